// Metrics that are cheaper to compute at each scrape than to keep up to date.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "controller/runtime/manager.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_phase.h"

namespace gso {
namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

// Sets one gauge family from counts by label value, dropping series that are gone.
void set_counts(Metrics& metrics, const char* name, const char* label, const std::map<std::string, double>& counts) {
  metrics.clear(name);
  for (const auto& [value, count] : counts) metrics.set(name, {{label, value}}, count);
}

// Profile -> state -> nodes.
using ProfileCounts = std::map<std::string, std::map<std::string, double>>;

// A ConfigMap may have any number of keys: what is beyond the first by name shares one series for each state.
void set_profile_counts(Metrics& metrics, const ProfileCounts& profiles) {
  constexpr std::size_t kMostProfiles = 100;
  metrics.clear("gpusharing_nodes_by_profile");
  std::map<std::string, double> others;
  std::size_t shown = 0;
  for (const auto& [profile, states] : profiles) {
    const bool own = ++shown <= kMostProfiles;
    for (const auto& [state, count] : states) {
      const Metrics::Labels labels{{"profile", profile.empty() ? "none" : profile}, {"state", state}};
      if (own) metrics.set("gpusharing_nodes_by_profile", labels, count);
      if (!own) others[state] += count;
    }
  }
  for (const auto& [state, count] : others) {
    metrics.set("gpusharing_nodes_by_profile", {{"profile", "other"}, {"state", state}}, count);
  }
}

// Why a rollout starts no node: the reason of its condition, where that is not that it rolls out.
std::string why_waiting(const nlohmann::json& status) {
  const auto conditions = status.find("conditions");
  if (!status.is_object() || conditions == status.end() || !conditions->is_array()) return {};
  for (const auto& condition : *conditions) {
    if (text_at(condition, "type") != "Progressing") continue;
    std::string reason = text_at(condition, "reason");
    return reason == "RollingOut" ? std::string() : reason;
  }
  return {};
}

}  // namespace

void Manager::fill_metrics(Metrics& metrics) {
  const auto store = [&](const char* resource, std::size_t objects, bool synced) {
    metrics.set("gpusharing_store_objects", {{"resource", resource}}, static_cast<double>(objects));
    metrics.set("gpusharing_watch_synced", {{"resource", resource}}, synced ? 1 : 0);
  };
  metrics.clear("gpusharing_watches");
  for (const auto& status : cluster_.status()) {
    store(status.gvr.resource.c_str(), status.objects, status.synced);
    metrics.set("gpusharing_watches", {{"resource", status.gvr.resource}}, status.absent ? 0 : 1);
  }
  const auto open = [&](const char* resource, WatchScope::Kind kind) {
    metrics.set("gpusharing_watches", {{"resource", resource}}, static_cast<double>(dynamic_.open(kind)));
  };
  open("pods", WatchScope::Kind::pods);
  open("configmaps", WatchScope::Kind::configmaps);
  open("controllerrevisions", WatchScope::Kind::controllerrevisions);
  metrics.set("gpusharing_watches", {{"resource", "kai"}}, static_cast<double>(kai_watches_.open()));
  if (!leading()) metrics.clear("gpusharing_findings");
  fill_kai_metrics(metrics);
  const bool complete = world_.unsynced_namespaces.empty();
  store("pods", world_.operand_pods.size(), complete && world_.operand_pods.synced());
  store("configmaps", world_.configmaps.size(), complete && world_.configmaps.synced());
  store("controllerrevisions", world_.revisions.size(), complete && world_.revisions.synced());

  for (const StoreSize& kept : store_sizes()) {
    metrics.set("gpusharing_store_bytes", {{"resource", kept.resource}}, static_cast<double>(kept.bytes));
  }
  const Metrics::Labels queue{{"name", kFleet}, {"controller", kFleet}};
  metrics.set("workqueue_unfinished_work_seconds", queue, seconds(queue_.unfinished_work()));
  metrics.set("workqueue_longest_running_processor_seconds", queue, seconds(queue_.longest_running()));
  metrics.set("controller_runtime_max_concurrent_reconciles", {{"controller", kFleet}}, 1);
  metrics.set("leader_election_master_status", {{"name", options_.lease_name}}, leading() ? 1 : 0);
  metrics.set("gpusharing_watch_lag_seconds", {}, seconds(expectations_.lag()));
  metrics.set("gpusharing_interned_bytes", {}, static_cast<double>(k8s::Interned::pool_bytes()));
  fill_fleet_metrics(metrics);
  fill_process_metrics(metrics);
}

void Manager::fill_kai_metrics(Metrics& metrics) {
  std::map<std::string, double> reservations;
  std::set<std::string> mismatched;
  std::size_t total = 0;
  const KaiIndex& kai = index_.impl().kai;
  for (const auto& [name, group] : kai.groups()) total += group.reservations.size();
  double odd = 0;
  const bool known = leading();  // A standby plans nothing: its data from the time when it led is outdated.
  if (!known) total = 0;
  for (const Finding& finding : known ? view_->last_plan.findings : std::vector<Finding>()) {
    if (finding.reason == kKaiMismatch) mismatched.insert(finding.object.name);
    if (finding.object.kind != "Pod" || finding.object.ns != kai.view().reservations) continue;
    ++reservations[finding.reason];
    ++odd;
  }
  if (total > 0) reservations["Sound"] = std::max(0.0, static_cast<double>(total) - odd);
  set_counts(metrics, "gpusharing_kai_reservations", "state", reservations);
  metrics.set("gpusharing_kai_mismatched_nodes", {}, static_cast<double>(mismatched.size()));
}

void Manager::fill_fleet_metrics(Metrics& metrics) {
  std::map<std::string, double> states;
  std::map<std::string, double> reasons;
  double without_gpus = 0;
  double drifting = 0;
  ProfileCounts profiles;
  std::map<std::string, MonoTime> cordoned;
  const MonoTime now = clock_->monotonic();
  // A standby assesses nothing: series from the time when it led would be outdated and never removed.
  const auto count_cordon = [&](const Node& node) {
    if (!node.unschedulable || !is_cordoned_by_operator(node)) return;
    const auto since = cordoned_since_.find(node.meta.name);
    cordoned.emplace(node.meta.name, since == cordoned_since_.end() ? now : since->second);
  };
  for (const std::string& name : leading() ? index_.abandoned_nodes() : std::vector<std::string>()) {
    if (const Node* node = world_.nodes.find(name)) count_cordon(*node);
  }
  for (const std::string& name : leading() ? index_.node_names() : std::vector<std::string>()) {
    const NodeAssessment* assessment = index_.assessment(name);
    const Node* node = world_.nodes.find(name);
    if (assessment == nullptr || node == nullptr) continue;
    const std::string state(state_name(*assessment));
    ++states[state];
    ++profiles[std::string(assessment->profile_ref.view())][state];
    if (drifts(*assessment) && assessment->at_install == AtInstall::shown) ++drifting;
    const Phase phase = phase_of(*assessment);
    if (phase == Phase::blocked || phase == Phase::held) ++reasons[std::string(shown_reason(*assessment))];
    if (node->ready && !serves_gpus(*node)) ++without_gpus;
    count_cordon(*node);
  }
  set_counts(metrics, "gpusharing_nodes", "state", states);
  set_counts(metrics, "gpusharing_nodes_blocked", "reason", reasons);
  set_profile_counts(metrics, profiles);
  metrics.set("gpusharing_nodes_drifting", {}, drifting);
  metrics.set("gpusharing_nodes_allocatable_zero", {}, without_gpus);
  cordoned_since_ = std::move(cordoned);
  Duration longest = Duration::zero();
  for (const auto& [name, since] : cordoned_since_) longest = std::max(longest, now - since);
  metrics.set("gpusharing_nodes_cordoned", {}, static_cast<double>(cordoned_since_.size()));
  metrics.set("gpusharing_nodes_cordoned_longest_seconds", {}, seconds(longest));
  fill_rollout_metrics(metrics);
}

void Manager::fill_rollout_metrics(Metrics& metrics) const {
  std::map<std::string, double> phases;
  std::map<std::string, double> waiting;
  metrics.clear("gpusharing_rollout_nodes");
  for (const auto& [key, rollout] : world_.rollouts.all()) {
    ++phases[rollout->phase.empty() ? "New" : rollout->phase];
    if (has_ended(rollout->phase)) continue;
    const auto status = nlohmann::json::parse(rollout->status_json, nullptr, false);
    if (std::string reason = why_waiting(status); !reason.empty()) ++waiting[reason];
    if (!status.is_object() || !status.contains("counts") || !status["counts"].is_object()) continue;
    for (const auto& [state, count] : status["counts"].items()) {
      if (!count.is_number()) continue;
      metrics.set("gpusharing_rollout_nodes", {{"rollout", key.name}, {"state", state}}, count.get<double>());
    }
  }
  set_counts(metrics, "gpusharing_rollouts", "phase", phases);
  set_counts(metrics, "gpusharing_rollouts_waiting", "reason", waiting);
}

}  // namespace gso
