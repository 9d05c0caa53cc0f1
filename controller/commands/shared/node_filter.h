// Which nodes a screen shows: --state, --policy, -l.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace gso {

struct NodeFilter {
  // Words of the column STATE in lower case, with or without their reason: "blocked", "blocked(outsidewindow)"; empty:
  // all.
  std::set<std::string> states;
  std::set<std::string> policies;
  k8s::LabelSelector labels;

  [[nodiscard]] bool empty() const { return states.empty() && policies.empty() && labels.empty(); }
  // `state`: as the table shows it, "Blocked(OutsideWindow)".
  [[nodiscard]] bool shows(std::string_view state, std::string_view policy, const k8s::StringMap& of_node) const;
};

// The flags as they were given.
struct NodeFilterFlags {
  std::vector<std::string> states, policies;
  std::string selector;
};
void add_node_filter(CLI::App& app, NodeFilterFlags& flags);
// Errors (`invalid`): a state that does not exist, with those that do; a selector that cannot be read.
[[nodiscard]] k8s::Result<NodeFilter> node_filter_of(const NodeFilterFlags& flags);

}  // namespace gso
