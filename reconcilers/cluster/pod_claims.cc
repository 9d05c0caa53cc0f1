// See pod_claims.h.
#include "reconcilers/cluster/pod_claims.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr std::string_view kClaim = "ResourceClaim";
constexpr std::string_view kTemplate = "ResourceClaimTemplate";
constexpr std::string_view kClass = "DeviceClass";

k8s::ObjectKey key_of(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  return {text_at(meta, "namespace"), text_at(meta, "name")};
}

}  // namespace

bool PodClaims::reads(std::string_view kind) {
  return kind == kClaim || kind == kTemplate || kind == kClass;
}

// A request has its class itself (v1beta1), in `exactly`, or in each alternative of `firstAvailable`.
PodClaims::Claim PodClaims::read(const Json& spec, const Json& status) {
  Claim out;
  const auto note = [&](const Json& request) {
    const std::string device_class = text_at(request, "deviceClassName");
    if (!device_class.empty()) out.classes.insert(device_class);
    return !device_class.empty();
  };
  for (const Json& request : list_at(object_at(spec, "devices"), "requests")) {
    bool named = note(request) || note(object_at(request, "exactly"));
    for (const Json& alternative : list_at(request, "firstAvailable")) named = note(alternative) || named;
    out.unclear = out.unclear || !named;
  }
  for (const Json& result : list_at(object_at(object_at(status, "allocation"), "devices"), "results"))
    out.drivers.insert(text_at(result, "driver"));
  out.unclear = out.unclear || out.classes.empty();
  return out;
}

void PodClaims::add(std::string_view kind, std::string_view json) {
  const Json object = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!object.is_object()) return;
  if (kind == kClass) {
    if (dump(object_at(object, "spec")).find(kGpuDraDriver) != std::string::npos)
      gpu_classes_.insert(key_of(object).name);
  } else if (kind == kTemplate) {
    templates_.insert_or_assign(key_of(object), read(object_at(object_at(object, "spec"), "spec"), Json()));
  } else {
    claims_.insert_or_assign(key_of(object), read(object_at(object, "spec"), object_at(object, "status")));
  }
}

bool PodClaims::is_for_gpu(const Claim& claim) const {
  if (!claim.drivers.empty()) return claim.drivers.contains(std::string(kGpuDraDriver));
  if (claim.unclear) return true;
  return std::ranges::any_of(claim.classes, [&](const std::string& device_class) {
    return gpu_classes_.contains(device_class) || device_class.ends_with("nvidia.com");
  });
}

// By its name, else by the name of the claim that was made of the template, else by the template.
const PodClaims::Claim* PodClaims::claim_of(const Json& pod, const Json& entry) const {
  const std::string ns = key_of(pod).ns;
  std::string name = text_at(entry, "resourceClaimName");
  for (const Json& made : list_at(object_at(pod, "status"), "resourceClaimStatuses")) {
    if (name.empty() && text_at(made, "name") == text_at(entry, "name")) name = text_at(made, "resourceClaimName");
  }
  if (const auto claim = claims_.find({ns, name}); claim != claims_.end()) return &claim->second;
  const auto made_of = templates_.find({ns, text_at(entry, "resourceClaimTemplateName")});
  return made_of == templates_.end() ? nullptr : &made_of->second;
}

std::string PodClaims::without_other_claims(std::string_view pod) const {
  Json object = Json::parse(pod.begin(), pod.end(), nullptr, false);
  if (!object.is_object()) return std::string(pod);
  const Json claims = list_at(object_at(object, "spec"), "resourceClaims");
  const bool of_gpu = std::ranges::any_of(claims, [&](const Json& entry) {
    const Claim* claim = claim_of(object, entry);
    return claim == nullptr || is_for_gpu(*claim);
  });
  if (claims.empty() || of_gpu) return std::string(pod);
  object["spec"].erase("resourceClaims");
  return dump(object);
}

}  // namespace gso
