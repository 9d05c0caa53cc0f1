// See resource_name.h.
#include "reconcilers/profile/resource_name.h"

#include <array>
#include <cstddef>

#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr std::string_view kDomain = "nvidia.com";
constexpr std::string_view kShortDomain = "nvidia";
constexpr std::string_view kPunctuation = "-_.";  // People confuse these.
constexpr std::size_t kMostEdits = 2;

struct Spelling {
  std::string_view plain;  // Without the domain.
  std::string_view meant;
  std::size_t most_edits;  // Names one edit from "gpu" belong to other plugins.
};
constexpr std::array<Spelling, 3> kSpellings{
    {{"gpu", "nvidia.com/gpu", 0}, {"gpus", "nvidia.com/gpu", 0}, {"gpu.shared", "nvidia.com/gpu.shared", kMostEdits}}};

}  // namespace

std::string_view meant_resource(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view domain = resource.substr(0, slash);
  const std::string_view plain = resource.substr(slash + 1);
  if (!within_edits(domain, kDomain, kMostEdits, kPunctuation) && !equal_fold(domain, kShortDomain)) return {};
  for (const Spelling& each : kSpellings) {
    if (resource == each.meant) return {};
    if (within_edits(plain, each.plain, each.most_edits, kPunctuation)) return each.meant;
  }
  return {};
}

}  // namespace gso
