// Start and end, and what the operator answers meanwhile; manager_parts.cc makes and connects the parts.
#include "controller/runtime/manager.h"

#include <fmt/format.h>

#include <utility>

#include "controller/runtime/operator_pages.h"
#include "controller/watches/daemonset_search.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/plan_draft.h"

namespace gso {
namespace {

// A retry cannot fix it.
bool needs_somebody(k8s::Reason reason) {
  return reason == k8s::Reason::not_found || reason == k8s::Reason::forbidden || reason == k8s::Reason::unauthorized ||
         reason == k8s::Reason::invalid;
}

// A stop waits so long for Events that are queued.
constexpr Duration kMostForEvents = std::chrono::seconds(1);

}  // namespace

void Manager::start() {
  view_->started = true;
  view_->leading = elector_ == nullptr;
  cluster_.start(&services_, executor_);
  services_.spawn(executor_, cluster_.rediscover(options_.discovery_period));
  services_.spawn(executor_, search_.run());
  services_.spawn(executor_, recorder_->run());
  services_.spawn(executor_, loop_->resync());
  if (elector_ != nullptr) {
    services_.spawn(executor_, elector_->run());
    watch_lease();
  }
  workers_.spawn(executor_, loop_->run());
}

void Manager::stop_planning() {
  stopping_ = true;
  lookup_queue_.stop();
  loop_->stop();
}

boost::asio::awaitable<bool> Manager::finish_writes(MonoTime deadline) {
  bool ended = co_await workers_.join_until(deadline);
  if (ended) ended = co_await plan_executor_->finish_sent(deadline);
  const auto in_flight = plan_executor_->in_flight();
  if (!ended) log_->warning("Unanswered writes were cancelled at the shutdown timeout", {{"inFlight", in_flight}});
  // What still waits for its turn is never sent, because may_write() refuses it: nothing to wait for.
  plan_executor_->cancel();
  kai_reader_.cancel();
  consumers_.cancel();
  workers_.cancel();
  co_await workers_.join();
  (void)co_await plan_executor_->finish(MonoTime::never());
  co_return in_flight == 0 && !can_land_still();
}

bool Manager::can_land_still() const {
  return elector_ != nullptr && elector_->can_land_still(plan_executor_->answer_lost_at());
}

boost::asio::awaitable<void> Manager::release_lease() {
  // A successor would not know of what this replica has done last.
  co_await recorder_->flush(clock_->monotonic() + kMostForEvents);
  if (elector_ == nullptr) co_return;
  elector_->stop();
  co_await elector_->release();
}

boost::asio::awaitable<void> Manager::end(bool crash) {
  crashed_ = crash;
  stop_planning();
  if (crash) plan_executor_->crash();
  if (elector_ != nullptr) {
    elector_->stop();
    if (lease_watch_ != nullptr) lease_watch_->stop();
  }
  recorder_->stop();
  cluster_.stop();
  search_.stop();
  dynamic_.stop();
  kai_watches_.stop();
  partitioning_watches_.stop();
  kai_reader_.cancel();
  plan_executor_->cancel();
  consumers_.cancel();
  workers_.cancel();
  services_.cancel();
  co_await workers_.join();
  (void)co_await plan_executor_->finish(MonoTime::never());
  co_await consumers_.join();
  co_await services_.join();
}

void Manager::stopped_leading() {
  if (stopping_)
    log_->info("Stopped leading, released the Lease", {{"identity", options_.identity}});
  else
    log_->warning("Stopped leading", {{"identity", options_.identity}});
  view_->leading = false;
  loop_->note_lost_lead();
  if (options_.exit_on_lease_loss && !stopping_)
    become_fatal({k8s::Reason::unavailable, 0, "the lease was lost and exit-on-lease-loss is set"});
}

void Manager::report_clock(k8s::Duration ahead) {
  if (ahead == k8s::Duration::zero())
    return log_->info("A server agrees with this machine's clock, which counts again");
  log_->warning("This machine's clock contradicts every API server: the servers' time counts",
                {{"ahead", k8s::format_go_duration(ahead)}});
}

void Manager::become_fatal(k8s::Error error) {
  if (fatal_) return;
  log_->error("Shutting down on error", {{"error", error.message}});
  fatal_ = std::move(error);
  if (notify_fatal_) notify_fatal_();
}

void Manager::task_failed(const std::string& what) {
  become_fatal({k8s::Reason::unavailable, 0, "internal error: " + what});
}

bool Manager::leading() const {
  return elector_ == nullptr || elector_->leading();
}

std::string Manager::leader() const {
  return elector_ == nullptr ? options_.identity : elector_->observed().holder;
}

k8s::Result<void> Manager::may_write() const {
  if (stopping_) return k8s::fail(k8s::Reason::cancelled, "shutting down");
  return may_report();
}

k8s::Result<void> Manager::may_report() const {
  if (crashed_) return k8s::fail(k8s::Reason::cancelled, "shutting down");
  if (elector_ != nullptr && !elector_->may_write()) return k8s::fail(k8s::Reason::cancelled, "the lease is not held");
  return {};
}

HttpAnswer Manager::debug(const HttpRequest& request) const {
  return pages_->answer(request);
}

AdmissionParts Manager::admission() const {
  AdmissionParts out;
  out.holds_profiles = [this](const k8s::ObjectKey& config_map) {
    return world_.daemonsets.synced() && holds_profiles(world_, config_map);
  };
  out.key_users = [this](const k8s::ObjectKey& config_map) {
    return [users = std::make_shared<const KeyUsers>(world_, config_map)](const std::string& key) {
      return users->of(key);
    };
  };
  out.pod_rules = [this] { return rules_of(world_, settings_); };
  return out;
}

ProbeAnswer Manager::live() const {
  return fatal_ ? ProbeAnswer{false, fatal_->message} : ProbeAnswer{};
}

// Not ready while a store has not synced or is outdated, while the record or, for a new leader, the nodes in a change
// cannot be read, and while the Lease cannot be read or written for a reason that no retry ends. Whether it leads says
// nothing about that: standbys are ready. What the operator works without is named in the answer, and so are the views
// whose watches do not deliver.
ProbeAnswer Manager::ready() const {
  std::string missing;
  std::string without;
  const auto miss = [&missing](const std::string& what, const std::optional<k8s::Error>& error) {
    missing += fmt::format("{}{}{}\n", what, error ? ": " : "", error ? error->message : "");
  };
  for (const ClusterWatches::Kind& kind : cluster_.kinds())
    if (kind.is_done_without())
      without += fmt::format("\nwithout {}: {}", kind.gvr.resource, kind.watch->error()->message);
    else if (!kind.watch->readable())
      miss(kind.gvr.resource + " not synced", kind.watch->error());
  if (!search_.ended()) miss("daemonsets not searched", search_.error());
  for (const StaleView& stale : world_.stale_views)
    if (stale.reported) without += "\nstale: " + describe(stale);
  for (const WatchScope& scope : dynamic_.loading()) missing += to_string(scope) + " not synced\n";
  for (const DynamicWatches::Refusal& refusal : dynamic_.refused()) {
    // Without its record the operator plans nothing at all.
    const bool needed = refusal.scope.ns == settings_.operator_namespace;
    const std::string line = fmt::format("{}: {}", to_string(refusal.scope), refusal.error.message);
    if (needed) missing += line + "\n";
    if (!needed) without += "\nwithout " + line;
  }
  const bool leads = leading();
  if (leads && !view_->waits_for.empty()) {
    missing += fmt::format("nothing is planned until this leader has read what the one before has written: {}\n",
                           view_->waits_for);
  }
  if (elector_ != nullptr && elector_->problem() && needs_somebody(elector_->problem()->reason))
    missing += elector_->problem()->message + "\n";
  if (!missing.empty()) return {false, missing};
  return {true, (leads ? "ok, leading" : "ok, standing by") + without};
}

}  // namespace gso
