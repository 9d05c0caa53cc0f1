#include "controller/runtime/readiness.h"

#include <fmt/format.h>

#include <string>

#include "reconcilers/cluster/stale_views.h"

namespace gso {
namespace {

// A retry cannot fix it.
bool needs_somebody(k8s::Reason reason) {
  return reason == k8s::Reason::not_found || reason == k8s::Reason::forbidden || reason == k8s::Reason::unauthorized ||
         reason == k8s::Reason::invalid;
}

}  // namespace

ProbeAnswer readiness(const ReadinessParts& parts) {
  std::string missing;
  std::string without;
  for (const auto& status : parts.cluster->status()) {
    if (status.optional_missing) {
      without += fmt::format("\nwithout {}: {}", status.gvr.resource, status.error->message);
      continue;
    }
    if (status.readable()) continue;
    missing += fmt::format("{} not synced{}{}\n", status.gvr.resource, status.error ? ": " : "",
                           status.error ? status.error->message : "");
  }
  if (!parts.search->ended()) {
    const auto& error = parts.search->error();
    missing += fmt::format("daemonsets not searched{}{}\n", error ? ": " : "", error ? error->message : "");
  }
  for (const StaleView& stale : parts.world->stale_views) {
    if (stale.reported) without += "\nstale: " + describe(stale);
  }
  for (const WatchScope& scope : parts.dynamic->loading()) missing += to_string(scope) + " not synced\n";
  for (const DynamicWatches::Refusal& refusal : parts.dynamic->refused()) {
    // Without its record the operator plans nothing at all.
    const bool needed = refusal.scope.ns == parts.operator_namespace;
    const std::string line = fmt::format("{}: {}", to_string(refusal.scope), refusal.error.message);
    if (needed) missing += line + "\n";
    if (!needed) without += "\nwithout " + line;
  }
  if (parts.leads && !parts.waits_for.empty()) {
    missing += fmt::format("nothing is planned until this leader has read what the one before has written: {}\n",
                           parts.waits_for);
  }
  const LeaderElector* elector = parts.elector;
  if (elector != nullptr && elector->problem() && needs_somebody(elector->problem()->reason)) {
    missing += elector->problem()->message + "\n";
  }
  if (!missing.empty()) return {false, missing};
  return {true, (parts.leads ? "ok, leading" : "ok, standing by") + without};
}

}  // namespace gso
