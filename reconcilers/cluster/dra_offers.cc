// See dra_offers.h.
#include "reconcilers/cluster/dra_offers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/labels.h"

namespace gso {

std::string double_offer(std::string_view device_class) {
  return fmt::format(
      "the DRA driver {} offers the GPUs of this node as well, and DeviceClass {} has extendedResourceName: {}. While "
      "the device plugin restarts, the scheduler gives the same GPU to a second pod, so the operator restarts no pod "
      "on this node. Remove extendedResourceName from the DeviceClass, or keep the DRA driver off the node",
      kGpuDraDriver, device_class, kGpuResource);
}

void DraOffers::attach(World& world) {
  world.device_classes.add_listener([this](const ObjectKey&, const auto&, const auto&) { classes_changed_ = true; });
  world.resource_slices.add_listener([this](const ObjectKey&, const auto& before, const auto& after) {
    if (everything_) return;
    if (before != nullptr) count(*before, -1);
    if (after != nullptr) count(*after, 1);
  });
}

void DraOffers::count(const ResourceSlice& slice, std::int64_t by) {
  if (slice.driver != kGpuDraDriver || slice.node.empty() || !slice.offers) return;
  std::string node(slice.node.view());
  if (std::int64_t& slices = offered_[node]; (slices += by) == 0) offered_.erase(node);
  changed_.insert(std::move(node));
}

void DraOffers::refresh(const World& world) {
  if (everything_) {
    for (const auto& [node, slices] : std::exchange(offered_, {})) changed_.insert(node);
    for (const auto& [key, slice] : world.resource_slices.all()) count(*slice, 1);
  }
  if (everything_ || classes_changed_) {
    std::string found;
    for (const auto& [key, device_class] : world.device_classes.all()) {
      const bool names_gpus = device_class->extended_resource == kGpuResource;
      if (names_gpus && (found.empty() || key.name < found)) found = key.name;
    }
    if (found != device_class_) {
      for (const auto& [node, slices] : offered_) changed_.insert(node);
      device_class_ = std::move(found);
    }
  }
  everything_ = classes_changed_ = false;
}

std::vector<std::string> DraOffers::take_changed_nodes() {
  std::vector<std::string> out(changed_.begin(), changed_.end());
  changed_.clear();
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> DraOffers::nodes() const {
  std::vector<std::string> out;
  if (device_class_.empty()) return out;
  for (const auto& [node, slices] : offered_) out.push_back(node);
  std::ranges::sort(out);
  return out;
}

const std::string& DraOffers::class_of(std::string_view node) const {
  static const std::string kNone;
  return !device_class_.empty() && offered_.contains(std::string(node)) ? device_class_ : kNone;
}

}  // namespace gso
