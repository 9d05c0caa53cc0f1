// Prints what the registered reconcilers may do, as JSON: [{"reconciler", "group", "resource", "verbs"}]. rbac_test.py
// compares it with the chart's roles.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reconcilers/registry.h"

int main() {
  nlohmann::json needs = nlohmann::json::array();
  const auto add = [&needs](const gso::Reconciler& reconciler, const k8s::Gvr& resource,
                            const std::vector<std::string>& verbs) {
    needs.push_back({{"reconciler", reconciler.name},
                     {"group", resource.group},
                     {"resource", resource.resource},
                     {"verbs", verbs}});
  };
  for (const gso::Reconciler& reconciler : gso::reconcilers()) {
    for (const k8s::Gvr& watched : reconciler.watches) add(reconciler, watched, {"list", "watch"});
    for (const gso::Access& access : reconciler.writes) add(reconciler, access.resource, access.verbs);
  }
  std::puts(needs.dump(1).c_str());
  return 0;
}
