// GPUs that a DRA driver offers in addition to the device plugin. The scheduler takes the DRA path for an extended
// resource that a DeviceClass names on every node where allocatable of it is 0: if such a node also publishes
// ResourceSlices, the same GPU is allocated twice. Source: filterExtendedResources of Kubernetes 1.36,
// extendeddynamicresources.go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reconcilers/model/snapshot.h"

namespace gso {

// The consequence for a node, for people.
[[nodiscard]] std::string double_offer(std::string_view device_class);
// The same where the class names another resource that the node's plugin serves: nothing is blocked for it.
[[nodiscard]] std::string double_offer_of(std::string_view resource, std::string_view device_class);

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
  [[nodiscard]] std::vector<std::string> nodes(const World& world) const;
  // Nodes for which the GPUs' driver publishes devices, by name, whatever DeviceClasses exist. Slices with a
  // nodeSelector are left out: nothing here evaluates one.
  [[nodiscard]] std::vector<std::string> offering(const World& world) const;
  // Resources below nvidia.com/ that a DeviceClass names -> the first such class by name.
  [[nodiscard]] const std::map<std::string, std::string>& classes() const { return classes_; }

 private:
  void count(const ResourceSlice& slice, std::int64_t by);
  void note_offering_changed(const World& world);

  bool everything_ = true;
  bool classes_changed_ = true;
  bool all_nodes_changed_ = false;
  std::int64_t all_nodes_ = 0;  // Slices with devices for all nodes.
  std::map<std::string, std::string> classes_;
  std::string device_class_;                               // The first by name; empty: none.
  std::unordered_map<std::string, std::int64_t> offered_;  // Node -> slices with devices.
  std::unordered_set<std::string> changed_;
};

}  // namespace gso
