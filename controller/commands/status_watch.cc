// Watches into a World, one view of it after the other.
#include "controller/commands/status_watch.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <map>
#include <memory>

#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/reads.h"
#include "controller/runtime/task_group.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/daemonset_search.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/watches/scoped_watch.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace asio = boost::asio;

namespace {

class FleetWatcher {
 public:
  FleetWatcher(FleetWatch watch, asio::any_io_executor executor)
      : watch_(std::move(watch)),
        executor_(executor),
        wake_(watch_.clock->make_signal()),
        tasks_(watch_.clock),
        cluster_(watch_.client, watch_.clock, &world_, k8s::WatcherOptions(),
                 {.complete = [this](const std::string& resource, std::size_t) { recovered(resource); },
                  .failed = [this](const std::string& resource, const k8s::Error& error) { failed(resource, error); }}),
        search_({.client = watch_.client,
                 .clock = watch_.clock,
                 .world = &world_,
                 .settings = &watch_.settings,
                 .changed = [this] { recovered(resources::daemon_sets.resource); },
                 .failed = [this](const k8s::Error& error) { failed(resources::daemon_sets.resource, error); }}),
        dynamic_({watch_.client, &world_, {}, &tasks_, executor_},
                 {.complete =
                      [this] {
                        index_.note_everything_changed();  // What was assessed without a namespace's objects.
                        wake_->notify();
                      },
                  .failed = [this](const std::string&, const k8s::Error&) { wake_->notify(); }}) {
    index_.attach(world_);
    const auto follow = [this](auto&... stores) {
      (stores.add_listener([this](const auto&...) { wake_->notify(); }), ...);
    };
    follow(world_.nodes, world_.daemonsets, world_.configmaps, world_.operand_pods, world_.revisions,
           world_.clusterpolicies, world_.policies, world_.rollouts, world_.kai.configs, world_.kai.runtime_classes);
  }

  asio::awaitable<int> run(std::ostream* out, std::ostream* err) {
    cluster_.start(&tasks_, executor_);
    tasks_.spawn(executor_, search_.run());
    tasks_.spawn(executor_, wake_on(watch_.stop, &stopping_));
    if (!watch_.lease.name.empty()) tasks_.spawn(executor_, follow_lease());
    if (watch_.timeout) tasks_.spawn(executor_, wake_every(*watch_.timeout, &timed_out_));
    if (watch_.redraw && watch_.page) tasks_.spawn(executor_, wake_every(*watch_.redraw, nullptr));
    if (watch_.look_again != nullptr) tasks_.spawn(executor_, wake_on(watch_.look_again, nullptr));
    int code = 0;
    for (;;) {
      co_await wake_->wait();
      if (!stopping_) co_await watch_.clock->sleep_for(watch_.batch);
      const std::optional<std::string> refusal = refused();
      if (refusal) {
        print_line(*err, "gpu-sharing-operator {}: {}", watch_.command, *refusal);
        code = 2;
      }
      if (refusal || stopping_) break;
      bool last = false;
      if (complete() && lease_known_) {
        const FleetView view = show(*out);
        code = view.exit_status;
        last = view.last;
      }
      if (last || !*out) break;  // Nobody sees a view that cannot be written.
      if (timed_out_) {
        code = kTimedOut;
        if (watch_.timed_out) watch_.timed_out(*err);
        break;
      }
    }
    cluster_.stop();
    search_.stop();
    dynamic_.stop();
    if (classes_) classes_->stop();
    tasks_.cancel();
    co_await tasks_.join();
    co_return code;
  }

 private:
  // Wakes run() at each notification, and says so in the flag; it can be null.
  asio::awaitable<void> wake_on(k8s::Signal* signal, bool* notified) {
    for (;;) {
      const bool asked = co_await signal->wait();
      if (!asked) co_return;
      if (notified != nullptr) *notified = true;
      wake_->notify();
    }
  }

  asio::awaitable<void> wake_every(k8s::Duration period, bool* passed) {
    for (;;) {
      co_await watch_.clock->sleep_for(period);
      if (passed != nullptr) *passed = true;
      wake_->notify();
    }
  }

  // Whether an operator renews its Lease: judged by what changes while this watches.
  asio::awaitable<void> follow_lease() {
    constexpr k8s::Duration kPoll = std::chrono::seconds(5);
    for (;;) {
      const k8s::ObjectKey lease = watch_.lease;
      std::vector<std::string> unread;
      OperatorPresence found = co_await find_operator(watch_.client, watch_.clock, lease, &unread);
      lease_unanswered_ = found.unread && is_no_answer(*found.unread);
      if (lease_unanswered_) {  // What was known stays.
        note_outage(*found.unread);
        unread = lease_unread_;
        found = presence_;
      }
      if (outage_.is_on()) wake_->notify();  // A watch that is open again says so by no change.
      const bool changed = !lease_known_ || found.none.has_value() != presence_.none.has_value() ||
                           unread != lease_unread_ || found.running != presence_.running;
      presence_ = std::move(found);
      lease_unread_ = std::move(unread);
      lease_known_ = true;
      if (changed) wake_->notify();
      co_await watch_.clock->sleep_for(kPoll);
    }
  }

  void recovered(const std::string& resource) {
    failures_.erase(resource);
    wake_->notify();
  }
  void failed(const std::string& resource, const k8s::Error& error) {
    failures_.insert_or_assign(resource, error);
    if (is_no_answer(error)) note_outage(error);
    wake_->notify();
  }

  void note_outage(const k8s::Error& error) { outage_.failed(error, watch_.clock->now()); }
  // Drops what a watch could not reach before it was opened again, which can be long before its next complete view.
  void end_outage() {
    std::erase_if(failures_,
                  [this](const auto& failure) { return is_no_answer(failure.second) && !failing(failure.first); });
    const bool unanswered = std::ranges::any_of(failures_, [](const auto& f) { return is_no_answer(f.second); });
    if (!unanswered && !lease_unanswered_) outage_.over();
  }
  [[nodiscard]] bool failing(const std::string& resource) const {
    if (resource == resources::daemon_sets.resource) return search_.error().has_value();
    const bool of_classes = resource == resources::runtime_classes.resource;
    const ScopedWatch* watch = of_classes ? classes_.get() : cluster_.find(gvr_of(resource));
    return watch != nullptr && watch->failing();
  }

  // Without these there is nothing to show, and trying again will not help.
  [[nodiscard]] std::optional<std::string> refused() const {
    for (const char* resource : {"nodes", "daemonsets"}) {
      const auto at = failures_.find(resource);
      if (at == failures_.end()) continue;
      const bool final = at->second.reason == k8s::Reason::forbidden || at->second.reason == k8s::Reason::unauthorized;
      if (final) return explain_error(at->second, watched(gvr_of(resource)));
    }
    return std::nullopt;
  }

  // Every watch that decides what is shown is complete or forbidden.
  bool complete() {
    if (!world_.nodes.synced()) return false;
    for (const ClusterWatches::Kind& kind : cluster_.kinds()) {
      const std::string& resource = kind.gvr.resource;
      if (resource != kNotShown && !kind.watch->synced() && !failures_.contains(resource)) return false;
    }
    note_forbidden();
    if (world_.operand_namespaces.empty()) dynamic_.want(record_scopes(watch_.settings));
    if (!search_.decide()) return false;
    dynamic_.want(wanted_scopes(world_, watch_.settings));
    return classes_complete() && dynamic_.loading().empty();
  }

  // Where KAI is served, its kai-config names RuntimeClasses.
  bool classes_complete() {
    world_.kai.configs_served = cluster_.served(resources::kai_configs);
    if (!world_.kai.configs_served) return true;
    if (!classes_) {
      classes_ = std::make_shared<ScopedWatch>();
      classes_->fill(&world_.kai.runtime_classes, &class_counts_, &project_runtime_class);
      k8s::WatcherOptions options;
      options.complete = [this] {
        world_.kai.runtime_classes.mark_synced();
        recovered(resources::runtime_classes.resource);
      };
      options.failed = [this](const k8s::Error& error) { failed(resources::runtime_classes.resource, error); };
      classes_->open(watch_.client, resources::runtime_classes, std::move(options));
      ScopedWatch::start(classes_, &tasks_, executor_);
    }
    return classes_->synced() || failures_.contains(resources::runtime_classes.resource);
  }

  [[nodiscard]] k8s::Gvr gvr_of(const std::string& resource) const {
    for (const ClusterWatches::Kind& kind : cluster_.kinds())
      if (kind.gvr.resource == resource) return kind.gvr;
    if (resource == resources::daemon_sets.resource) return resources::daemon_sets;
    return resource == resources::runtime_classes.resource ? resources::runtime_classes : k8s::Gvr("", "", resource);
  }

  [[nodiscard]] static Attempt watched(const k8s::Gvr& gvr, const std::string& ns = {}) {
    return {.verbs = {"list", "watch"}, .gvr = gvr, .ns = ns, .subresource = {}};
  }

  [[nodiscard]] std::vector<std::string> incomplete() const {
    std::vector<std::string> out;
    if (outage_.is_on()) out.push_back(outage_.line());
    for (const std::string& line : lease_unread_) append_unique(out, line);
    for (const std::string& line : record_elsewhere_) append_unique(out, line);
    for (const auto& [resource, error] : failures_)
      if (resource != kNotShown && !is_no_answer(error))
        append_unique(out, without_query(explain_error(error, watched(gvr_of(resource)))));
    for (const auto& refusal : dynamic_.refused())
      append_unique(out, explain_error(refusal.error, watched(resource_of(refusal.scope.kind), refusal.scope.ns)));
    return out;
  }

  // No API server has given it a version: a record that an operator writes takes its place.
  [[nodiscard]] bool record_is_assumed() const {
    const k8s::ObjectKey key{watch_.settings.operator_namespace, watch_.settings.state_config_map};
    const ConfigMap* state = world_.configmaps.find(key);
    return state != nullptr && state->meta.resource_version.empty();
  }

  // The fleet has a record, and not in the namespace that was named: nothing is concluded from its absence there.
  bool record_is_elsewhere(const PlannerSettings& settings) {
    const bool before = !record_elsewhere_.empty();
    record_elsewhere_.clear();
    const bool unread = world_.unsynced_namespaces.contains(settings.operator_namespace);
    if (!unread) note_record_elsewhere(presence_.none, settings, &world_, &record_elsewhere_);
    if (before == record_elsewhere_.empty()) index_.note_everything_changed();
    return !record_elsewhere_.empty();
  }

  void note_forbidden() {
    const bool forbidden = cluster_.forbidden(resources::cluster_policies).has_value();
    if (std::exchange(world_.clusterpolicies_forbidden, forbidden) != forbidden) index_.note_everything_changed();
  }

  FleetView show(std::ostream& out) {
    world_.policies_served = cluster_.policies_served();
    note_forbidden();
    const PlannerSettings settings = settings_of_operator(world_, watch_.settings);
    const bool elsewhere = record_is_elsewhere(settings);
    index_.refresh(world_, settings);
    if (watch_.assumes_baseline) (void)assume_baseline(world_, index_, settings, watch_.clock->now());
    end_outage();
    const k8s::WallTime now = watch_.clock->now();
    const Screen endless;
    FleetView view = watch_.show(
        {world_, index_, settings, now, incomplete(), presence_, record_is_assumed(), outage_.line()}, endless);
    // Until the next view only: the watches say which namespaces are read, and would take this for a change.
    if (elsewhere) world_.unsynced_namespaces.erase(settings.operator_namespace);
    if (view.lines == shown_) return view;
    if (watch_.page) {
      out << watch_.page();
    } else if (watch_.only_news) {
      for (const LiveLine& line : view.lines)
        if (std::ranges::find(shown_, line) == shown_.end()) out << line.text << "\n";
    } else {
      out << (shown_.empty() ? "" : watch_.before_each) << text_of(view.lines);
    }
    out << std::flush;
    shown_ = view.lines;
    return view;
  }

  static constexpr std::string_view kNotShown = "bindrequests";

  FleetWatch watch_;
  asio::any_io_executor executor_;
  std::unique_ptr<k8s::Signal> wake_;
  World world_;
  FleetIndex index_;
  TaskGroup tasks_;
  ClusterWatches cluster_;
  DaemonSetSearch search_;
  DynamicWatches dynamic_;
  std::shared_ptr<ScopedWatch> classes_;
  ScopeCounts class_counts_;
  std::map<std::string, k8s::Error> failures_;  // By resource, since its last complete view.
  std::vector<LiveLine> shown_;
  OperatorPresence presence_;
  std::vector<std::string> lease_unread_;      // Why it is unknown whether an operator runs.
  std::vector<std::string> record_elsewhere_;  // What note_record_elsewhere() says of the last view.
  ServerOutage outage_;
  bool lease_unanswered_ = false;  // The last request for the Lease, as is_no_answer() has it.
  bool lease_known_ = watch_.lease.name.empty();
  bool timed_out_ = false;
  bool stopping_ = false;
};

}  // namespace

asio::awaitable<int> watch_fleet(FleetWatch watch, std::ostream* out, std::ostream* err) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  FleetWatcher watcher(watch, executor);
  co_return co_await watcher.run(out, err);
}

}  // namespace gso
