#include "tests/sim/fleet/machine.h"

#include <utility>

namespace gso::sim {

Machine::Machine(std::vector<Gpu> gpus, Agenda* agenda, Pace* pace)
    : gpus_(std::move(gpus)), agenda_(agenda), pace_(pace) {}

void Machine::serve(const std::string& resource, std::int64_t count, bool at_most_one, bool mps) {
  resources_[resource] = {.capacity = count,
                          .allocatable = count,
                          .at_most_one = at_most_one,
                          .mps = mps,
                          .registration = ++registrations_};
  on_change();
}

void Machine::stop_serving(const std::string& resource) {
  auto it = resources_.find(resource);
  if (it == resources_.end()) return;
  it->second.allocatable = 0;
  const std::uint64_t stopped = it->second.registration;
  agenda_->after(pace_->exact(pace_->timing().stopped_plugin_grace), life_, [this, resource, stopped] {
    Resource& now = resources_[resource];
    if (now.registration != stopped) return;  // A plugin came back in time.
    now.capacity = 0;
    on_change();
  });
  on_change();
}

void Machine::lose_device(const std::string& resource) {
  auto it = resources_.find(resource);
  if (it == resources_.end() || it->second.allocatable == 0) return;
  --it->second.allocatable;
  on_change();
}

void Machine::serve_slices(SliceCounts slices, bool at_most_one) {
  stop_serving_slices();
  std::map<std::string, std::int64_t> devices;
  for (const auto& [gpu, sizes] : slices)
    for (const auto& [size, count] : sizes) devices[slice_resource(size)] += count;
  for (const auto& [resource, count] : devices) serve(resource, count, at_most_one, false);
  if (slices.size() < gpus_.size()) {
    devices["nvidia.com/gpu"] = static_cast<std::int64_t>(gpus_.size() - slices.size());
    serve("nvidia.com/gpu", devices["nvidia.com/gpu"], false, false);
  }
  for (const auto& [resource, count] : devices) slice_resources_.push_back(resource);
  slices_ = std::move(slices);
  on_slices_served();
}

void Machine::stop_serving_slices() {
  slices_.clear();
  for (const std::string& resource : std::exchange(slice_resources_, {})) stop_serving(resource);
}

void Machine::start_mps(const std::string& resource, std::int64_t replicas) {
  mps_[resource] = {replicas};
  exclusive_ = true;
}

void Machine::stop_mps(bool clean) {
  const bool had_servers = !mps_.empty();
  mps_.clear();
  if (clean) exclusive_ = false;
  if (had_servers) on_mps_clients_broken();
}

void Machine::reboot() {
  mps_.clear();
  slices_.clear();
  slice_resources_.clear();
  exclusive_ = false;
  for (auto& [name, resource] : resources_) resource = {.registration = ++registrations_};
  on_change();
}

}  // namespace gso::sim
