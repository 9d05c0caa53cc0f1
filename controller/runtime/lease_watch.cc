#include "controller/runtime/lease_watch.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

k8s::WatcherOptions only(const k8s::ObjectKey& lease, k8s::WatcherOptions options) {
  options.ns = lease.ns;
  options.label_selector = {};
  options.field_selector = k8s::FieldSelector::equals("metadata.name", lease.name);
  return options;
}

std::string holder_of(std::string_view json) {
  const auto lease = nlohmann::json::parse(json, nullptr, false);
  const auto pointer = nlohmann::json::json_pointer("/spec/holderIdentity");
  if (!lease.is_object() || !lease.contains(pointer) || !lease.at(pointer).is_string()) return {};
  return lease.at(pointer).get<std::string>();
}

}  // namespace

LeaseWatch::LeaseWatch(k8s::Reader* reader, k8s::ObjectKey lease, k8s::WatcherOptions options, LeaseWatchEvents events)
    : lease_(std::move(lease)),
      events_(std::move(events)),
      watcher_(reader, resources::leases, only(lease_, std::move(options)), this) {}

bool LeaseWatch::is_the_lease(std::string_view json) const {
  const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(json);
  return key && *key == lease_;
}

void LeaseWatch::init() {
  holder_.reset();
}

k8s::Result<void> LeaseWatch::init_apply(std::string_view json) {
  if (is_the_lease(json)) holder_ = holder_of(json);
  return {};
}

k8s::Result<void> LeaseWatch::init_remove(std::string_view json) {
  if (is_the_lease(json)) holder_.reset();
  return {};
}

void LeaseWatch::init_done() {
  events_.synced();
  if (holder_) return events_.changed(*holder_);
  events_.changed(std::nullopt);
}

k8s::Result<void> LeaseWatch::apply(std::string_view json) {
  if (is_the_lease(json)) events_.changed(holder_of(json));
  return {};
}

k8s::Result<void> LeaseWatch::remove(std::string_view json) {
  if (is_the_lease(json)) events_.changed(std::nullopt);
  return {};
}

}  // namespace gso
