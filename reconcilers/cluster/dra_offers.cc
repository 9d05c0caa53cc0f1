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

std::string double_offer_of(std::string_view resource, std::string_view device_class) {
  return fmt::format(
      "the DRA driver {} offers the GPUs of this node as well, and DeviceClass {} has extendedResourceName: {}, which "
      "the node's device plugin serves. While the plugin restarts, the scheduler gives the same GPU to a second pod. "
      "Remove extendedResourceName from the DeviceClass, or keep the DRA driver off the node",
      kGpuDraDriver, device_class, resource);
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
  if (slice.driver != kGpuDraDriver || !slice.offers) return;
  if (slice.all_nodes) {
    all_nodes_ += by;
    all_nodes_changed_ = true;
    return;
  }
  if (slice.node.empty()) return;
  std::string node(slice.node.view());
  if (std::int64_t& slices = offered_[node]; (slices += by) == 0) offered_.erase(node);
  changed_.insert(std::move(node));
}

void DraOffers::note_offering_changed(const World& world) {
  for (std::string& name : offering(world)) changed_.insert(std::move(name));
}

void DraOffers::refresh(const World& world) {
  if (everything_) {
    for (const auto& [node, slices] : std::exchange(offered_, {})) changed_.insert(node);
    all_nodes_changed_ = std::exchange(all_nodes_, 0) != 0;
    for (const auto& [key, slice] : world.resource_slices.all()) count(*slice, 1);
  }
  if (everything_ || classes_changed_) {
    classes_.clear();
    for (const auto& [key, device_class] : world.device_classes.all()) {
      const std::string resource(device_class->extended_resource.view());
      if (!resource.starts_with("nvidia.com/")) continue;
      const auto [known, added] = classes_.emplace(resource, key.name);
      if (!added && key.name < known->second) known->second = key.name;
    }
    const auto gpus = classes_.find(std::string(kGpuResource));
    const std::string found = gpus == classes_.end() ? std::string() : gpus->second;
    if (found != device_class_) {
      note_offering_changed(world);
      device_class_ = found;
    }
  }
  if (all_nodes_changed_) {
    for (const auto& [key, node] : world.nodes.all()) changed_.insert(key.name);
  }
  everything_ = classes_changed_ = all_nodes_changed_ = false;
}

std::vector<std::string> DraOffers::take_changed_nodes() {
  std::vector<std::string> out(changed_.begin(), changed_.end());
  changed_.clear();
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> DraOffers::nodes(const World& world) const {
  return device_class_.empty() ? std::vector<std::string>() : offering(world);
}

std::vector<std::string> DraOffers::offering(const World& world) const {
  std::vector<std::string> out;
  for (const auto& [node, slices] : offered_) out.push_back(node);
  if (all_nodes_ > 0) {
    for (const auto& [key, node] : world.nodes.all()) {
      if (!offered_.contains(key.name)) out.push_back(key.name);
    }
  }
  std::ranges::sort(out);
  return out;
}

const std::string& DraOffers::class_of(std::string_view node) const {
  static const std::string kNone;
  return !device_class_.empty() && (all_nodes_ > 0 || offered_.contains(std::string(node))) ? device_class_ : kNone;
}

}  // namespace gso
