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
  exclusive_ = false;
  for (auto& [name, resource] : resources_) resource = {.registration = ++registrations_};
  on_change();
}

}  // namespace gso::sim
