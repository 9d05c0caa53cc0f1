// Manifests to World to plan to text or JSON.
#include "controller/command_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "controller/input_file.h"
#include "reconcilers/fleet.h"
#include "reconcilers/manifests.h"
#include "reconcilers/plan.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

// One pass over every chosen reconciler.
Plan plan_once(const Snapshot& snapshot, FleetIndex& index, const std::string& only) {
  index.refresh(snapshot.world, snapshot.settings);
  Plan plan;
  for (const Reconciler& reconciler : reconcilers()) {
    if (only.empty() || reconciler.name == only) plan.append(reconciler.plan(snapshot, index));
  }
  return plan;
}

// Conditions appear one after another (settled, then soaking), so crediting them is repeated until no new one shows.
Plan plan_with_credit(const LoadedManifests& loaded, const PlanOptions& options, WallTime now) {
  PlannerSettings settings = options.settings;
  settings.kai.explain_all = true;
  constexpr int kMostRounds = 8;
  std::map<std::string, WallTime> observed;
  const WallTime since = now - std::chrono::duration_cast<std::chrono::milliseconds>(options.assume_observed_for);
  Plan plan;
  for (int round = 0; round < kMostRounds; ++round) {
    FleetIndex index;
    index.note_everything_changed();
    const Snapshot snapshot{loaded.world, now, observed, loaded.consumers, settings};
    plan = plan_once(snapshot, index, options.only);
    if (options.assume_observed_for <= Duration::zero()) break;
    bool fresh = false;
    for (const ConditionName& condition : plan.conditions) fresh = observed.emplace(condition, since).second || fresh;
    if (!fresh) break;
  }
  return plan;
}

void print_json(const Plan& plan, std::ostream& out) {
  nlohmann::ordered_json document;
  document["actions"] = nlohmann::ordered_json::array();
  document["findings"] = nlohmann::ordered_json::array();
  for (const PlannedAction& action : plan.actions) document["actions"].push_back(to_json(action));
  for (const Finding& finding : plan.findings) document["findings"].push_back(to_json(finding));
  out << document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

void print_text(const Plan& plan, std::ostream& out) {
  if (plan.actions.empty()) out << "Nothing to do.\n";
  for (const PlannedAction& action : plan.actions) out << print(action) << "\n";
  for (const Finding& finding : plan.findings) {
    out << fmt::format("{}: {} {}: {}: {}\n", to_string(finding.severity), finding.object.kind,
                       k8s::to_string(ObjectKey{finding.object.ns, finding.object.name}), finding.reason,
                       finding.message);
  }
  if (plan.requeue_after) out << "Would look again in " << k8s::format_go_duration(*plan.requeue_after) << ".\n";
}

std::string unknown_reconciler(const std::string& name) {
  std::string known;
  for (const Reconciler& reconciler : reconcilers())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", reconciler.name);
  return fmt::format("--only {}: there is {}", name, known);
}

}  // namespace

int run_plan(const PlanOptions& options, std::istream& in, std::ostream& out, std::ostream& err) {
  const auto usage = [&](const std::string& what) {
    err << "gpu-sharing-operator plan: " << what << "\n";
    return 2;
  };
  const auto& all = reconcilers();
  if (!options.only.empty() &&
      std::none_of(all.begin(), all.end(), [&](const Reconciler& r) { return r.name == options.only; })) {
    return usage(unknown_reconciler(options.only));
  }
  WallTime now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  if (!options.now.empty()) {
    const std::optional<WallTime> parsed = k8s::parse_rfc3339(options.now);
    if (!parsed) return usage(fmt::format("--now '{}' is no time such as 2026-01-02T03:04:05Z", options.now));
    now = *parsed;
  }
  std::vector<ManifestFile> files;
  bool nothing = true;
  for (const std::string& name : options.files) {
    k8s::Result<std::string> text = read_written_input(name, in);
    if (!text) return usage(text.error().message);
    nothing = nothing && says_nothing(*text);
    files.push_back({name, *std::move(text)});
  }
  if (nothing) {
    return usage(
        fmt::format("there is no manifest in {}; give the objects of a cluster, as `kubectl get … -o yaml` prints them",
                    fmt::join(options.files, ", ")));
  }
  const k8s::Result<LoadedManifests> loaded = load_manifests(files, now);
  if (!loaded) return usage(loaded.error().message);
  const Plan plan = plan_with_credit(*loaded, options, now);
  if (options.json) {
    print_json(plan, out);
  } else {
    print_text(plan, out);
    for (const std::string& ignored : loaded->ignored) err << "ignored: " << ignored << "\n";
  }
  const bool errors = std::any_of(plan.findings.begin(), plan.findings.end(),
                                  [](const Finding& finding) { return finding.severity == Severity::error; });
  return errors ? 1 : 0;
}

}  // namespace gso
