// What a pod's ResourceClaims are called, and whether one of them is for a GPU.
#include <algorithm>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

struct ClaimOfPod {
  std::string name;  // In the pod.
  std::string claim;
};
struct ClaimingPod {
  ObjectMeta meta;
  std::vector<ClaimOfPod> asked;
  std::vector<ClaimOfPod> made;  // Of a template.
};
constexpr json::Row<ClaimingPod> kClaimingPod[] = {
    json::list<&ClaimingPod::asked>("spec.resourceClaims"),
    json::row<&ClaimingPod::asked, &ClaimOfPod::name>("spec.resourceClaims[].name"),
    json::row<&ClaimingPod::asked, &ClaimOfPod::claim>("spec.resourceClaims[].resourceClaimName"),
    json::list<&ClaimingPod::made>("status.resourceClaimStatuses"),
    json::row<&ClaimingPod::made, &ClaimOfPod::name>("status.resourceClaimStatuses[].name"),
    json::row<&ClaimingPod::made, &ClaimOfPod::claim>("status.resourceClaimStatuses[].resourceClaimName"),
};

struct AllocatedClaim {
  ObjectMeta meta;
  bool allocated = false;
  bool of_gpu = false;
};
bool read_driver(Fields& fields, Value value, std::string_view path, AllocatedClaim& out) {
  std::string_view driver;
  if (!fields.view(value, path, driver)) return false;
  out.allocated = true;
  out.of_gpu = out.of_gpu || driver == kGpuDraDriver;
  return true;
}
constexpr json::Row<AllocatedClaim> kClaim[] = {{"status.allocation.devices.results[].driver", read_driver}};

}  // namespace

k8s::Result<std::vector<std::string>> project_claims_of_pod(std::string_view text) {
  const auto pod = json::project<ClaimingPod>("Pod", text, {.labels = false}, kClaimingPod);
  if (!pod) return std::unexpected(pod.error());
  std::vector<std::string> out;
  for (const ClaimOfPod& asked : pod->asked) {
    const auto made = std::ranges::find(pod->made, asked.name, &ClaimOfPod::name);
    const bool none_needed = asked.claim.empty() && made != pod->made.end() && made->claim.empty();
    if (none_needed) continue;
    out.push_back(!asked.claim.empty() || made == pod->made.end() ? asked.claim : made->claim);
  }
  return out;
}

k8s::Result<std::optional<bool>> project_gpu_claim(std::string_view text) {
  const auto claim = json::project<AllocatedClaim>("ResourceClaim", text, {.labels = false}, kClaim);
  if (!claim) return std::unexpected(claim.error());
  return claim->allocated ? std::optional(claim->of_gpu) : std::nullopt;
}

}  // namespace gso
