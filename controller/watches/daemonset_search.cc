// See daemonset_search.h.
#include "controller/watches/daemonset_search.h"

#include <string>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace {

// Small pages: the answer to a page is in memory as a whole, and so are its texts until they are cut.
constexpr int kObjectsOfAPage = 16;

}  // namespace

DaemonSetSearch::DaemonSetSearch(Parts parts) : parts_(std::move(parts)), wake_(parts_.clock->make_signal()) {
  parts_.world->clusterpolicies.add_listener([this](const auto&, const auto& before, const auto& after) {
    const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid &&
                      before->meta.deletion_timestamp == after->meta.deletion_timestamp;
    if (!same) look_again();
  });
}

void DaemonSetSearch::look_again() {
  due_ = true;
  wake_->notify();
}

void DaemonSetSearch::stop() {
  stopping_ = true;
  wake_->notify();
}

bool DaemonSetSearch::policies_known() const {
  return parts_.world->clusterpolicies.synced() || parts_.world->clusterpolicies_forbidden;
}

k8s::Duration DaemonSetSearch::pause() const {
  if (!seen_ || error_) return parts_.soon;
  const World& world = *parts_.world;
  const bool awaits_operator = seen_->of_cluster_policies.empty() && world.clusterpolicies.size() > 0;
  const bool nothing = world.operand_namespaces.size() < 2;  // The operator's own is always among them.
  return awaits_operator || nothing ? parts_.soon : kPeriod;
}

boost::asio::awaitable<void> DaemonSetSearch::run() {
  while (!stopping_) {
    if (policies_known()) {
      due_ = false;
      searching_ = true;
      k8s::Result<SeenDaemonSets> found = co_await search();
      searching_ = false;
      if (stopping_) co_return;
      error_.reset();
      if (found) {
        seen_ = *std::move(found);
      } else {
        error_ = found.error();
        parts_.failed(*error_);
      }
      parts_.changed();
    }
    // What is decided from a search says how long it is good for.
    const k8s::MonoTime ended = parts_.clock->monotonic();
    while (!stopping_ && !due_ && parts_.clock->monotonic() < ended + pause()) {
      const k8s::MonoTime until = ended + pause();
      co_await wake_->wait_until(until);
    }
  }
}

boost::asio::awaitable<k8s::Result<SeenDaemonSets>> DaemonSetSearch::search() {
  SeenDaemonSets found;
  const World& world = *parts_.world;
  const auto take = [&found, &world](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) found = {};
    // Most DaemonSets of a cluster are not even decoded.
    if (!json || !mentions_operand_container(*json)) return {};
    // What cannot be read governs nothing here; the watch of an operand namespace names it.
    if (const k8s::Result<DaemonSet> daemonset = project_daemonset(*json)) found.add(*daemonset, world);
    return {};
  };
  k8s::ItemFunction sink(take, [&found](std::string_view /*metadata*/, const k8s::Error& /*why*/) { ++found.beyond; });
  k8s::ListOptions options;
  options.page_limit = kObjectsOfAPage;
  const k8s::Result<std::string> listed = co_await parts_.client->list(resources::daemon_sets, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return found;
}

bool DaemonSetSearch::decide() {
  World& world = *parts_.world;
  if (!seen_) {
    if (!searching_ && !error_ && policies_known()) look_again();
    return false;
  }
  // Without the right to read the record the operator plans nothing, and a person is shown what can be read.
  const std::string& own = parts_.settings->operator_namespace;
  record_known_ = record_known_ || !world.unsynced_namespaces.contains(own) || world.refused_namespaces.contains(own);
  if (!record_known_) return false;
  namespaces_.decide(world, *parts_.settings, *seen_);
  show_foreign();
  return true;
}

void DaemonSetSearch::show_foreign() {
  World& world = *parts_.world;
  world.foreign_daemonsets.init();
  for (const DaemonSet& daemonset : seen_->kept)
    if (!world.operand_namespaces.contains(std::string(daemonset.meta.ns.view())))
      world.foreign_daemonsets.init_apply(daemonset);
  world.foreign_daemonsets.init_done();
  world.foreign_daemonsets_beyond = seen_->beyond;
}

}  // namespace gso
