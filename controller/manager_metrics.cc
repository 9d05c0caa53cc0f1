// What is cheaper to count when somebody scrapes than to keep up to date.
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "controller/manager.h"
#include "reconcilers/assess.h"

namespace gso {
namespace {

const std::string kFleet = "fleet";

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

// Sets one gauge family from counts by label value, dropping series that are gone.
void set_counts(Metrics& metrics, const char* name, const char* label, const std::map<std::string, double>& counts) {
  metrics.clear(name);
  for (const auto& [value, count] : counts) metrics.set(name, {{label, value}}, count);
}

bool ended(const std::string& phase) {
  return phase == "Completed" || phase == "Failed" || phase == "Superseded" || phase == "RolledBack";
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
  const bool complete = world_.unsynced_namespaces.empty();
  store("pods", world_.operand_pods.size(), complete && world_.operand_pods.synced());
  store("configmaps", world_.configmaps.size(), complete && world_.configmaps.synced());
  store("controllerrevisions", world_.revisions.size(), complete && world_.revisions.synced());

  const Metrics::Labels queue{{"name", kFleet}};
  metrics.set("workqueue_unfinished_work_seconds", queue, seconds(queue_.unfinished_work()));
  metrics.set("workqueue_longest_running_processor_seconds", queue, seconds(queue_.longest_running()));
  metrics.set("controller_runtime_max_concurrent_reconciles", {{"controller", kFleet}}, 1);
  metrics.set("leader_election_master_status", {{"name", options_.lease_name}}, leading() ? 1 : 0);
  metrics.set("gpusharing_watch_lag_seconds", {}, seconds(expectations_.lag()));
  metrics.set("gpusharing_interned_bytes", {}, static_cast<double>(k8s::Interned::pool_bytes()));
  fill_fleet_metrics(metrics);
  fill_process_metrics(metrics);
}

void Manager::fill_fleet_metrics(Metrics& metrics) {
  std::map<std::string, double> states;
  std::map<std::string, double> reasons;
  for (const std::string& name : index_.node_names()) {
    const NodeAssessment* assessment = index_.assessment(name);
    if (assessment == nullptr) continue;
    ++states[assessment->held ? "Held" : std::string(to_string(assessment->situation))];
    if (assessment->situation == Situation::blocked) ++reasons[std::string(assessment->reason)];
  }
  set_counts(metrics, "gpusharing_nodes", "state", states);
  set_counts(metrics, "gpusharing_nodes_blocked", "reason", reasons);

  std::map<std::string, double> phases;
  metrics.clear("gpusharing_rollout_nodes");
  for (const auto& [key, rollout] : world_.rollouts.all()) {
    ++phases[rollout->phase.empty() ? "New" : rollout->phase];
    if (ended(rollout->phase)) continue;
    const auto status = nlohmann::json::parse(rollout->status_json, nullptr, false);
    if (!status.is_object() || !status.contains("counts") || !status["counts"].is_object()) continue;
    for (const auto& [state, count] : status["counts"].items()) {
      if (!count.is_number()) continue;
      metrics.set("gpusharing_rollout_nodes", {{"rollout", key.name}, {"state", state}}, count.get<double>());
    }
  }
  set_counts(metrics, "gpusharing_rollouts", "phase", phases);
}

}  // namespace gso
