// GPUs that a DRA driver offers in addition to the device plugin. The scheduler takes the DRA path for an extended
// resource that a DeviceClass names on every node where allocatable of it is 0: if such a node also publishes
// ResourceSlices, the same GPU is allocated twice. Source: filterExtendedResources of Kubernetes 1.36,
// extendeddynamicresources.go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reconcilers/model/snapshot.h"

namespace gso {

// The consequence for a node, for people.
[[nodiscard]] std::string double_offer(std::string_view device_class);

class DraOffers {
 public:
  // Listens to the stores of `world`, which must outlive this object.
  void attach(World& world);
  void note_everything_changed() { everything_ = true; }
  void refresh(const World& world);
  // Nodes whose answer may have changed since the last call.
  [[nodiscard]] std::vector<std::string> take_changed_nodes();

  // --- After refresh(). The DeviceClass by which the scheduler would allocate the GPUs of this node; empty: none.
  [[nodiscard]] const std::string& class_of(std::string_view node) const;
  // All nodes with such a DeviceClass, by name.
  [[nodiscard]] std::vector<std::string> nodes() const;

 private:
  void count(const ResourceSlice& slice, std::int64_t by);

  bool everything_ = true;
  bool classes_changed_ = true;
  std::string device_class_;                               // The first by name; empty: none.
  std::unordered_map<std::string, std::int64_t> offered_;  // Node -> slices with devices.
  std::unordered_set<std::string> changed_;
};

}  // namespace gso
