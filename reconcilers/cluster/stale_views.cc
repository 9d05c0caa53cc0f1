#include "reconcilers/cluster/stale_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/labels.h"

namespace gso {

const StaleView* stale_view_of(const Snapshot& s, std::string_view ns) {
  const auto& views = s.world.stale_views;
  const auto found = std::ranges::find_if(views, [&](const StaleView& view) {
    return view.ns.empty() || view.ns == ns || view.ns == s.settings.operator_namespace;
  });
  return found == views.end() ? nullptr : &*found;
}

std::string describe(const StaleView& stale) {
  return fmt::format(
      "the watch of {} has delivered nothing since {}: no node is started and nothing is deleted until it does",
      stale.view, k8s::format_time(stale.since));
}

void report_stale_views(const Snapshot& s, Plan& plan) {
  for (const StaleView& stale : s.world.stale_views) {
    if (!stale.reported) continue;
    const std::string& ns = stale.ns.empty() ? s.settings.operator_namespace : stale.ns;
    plan.findings.push_back(
        {Severity::warning,
         {"v1", "Namespace", "", ns, ""},
         std::string(kViewStale),
         describe(stale) + ". The operator's log and /readyz say why; grant list and watch, or repair the connection"});
  }
}

}  // namespace gso
