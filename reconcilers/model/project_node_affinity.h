// Required node affinity, for the projections of pods and of pod templates.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/objects.h"

namespace gso::json {

inline bool read_requirement(Fields& fields, Value value, NodeSelectorRequirement& requirement) {
  return fields.object(value, "matchExpressions", [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, "matchExpressions.key", requirement.key);
    if (key == "operator") return fields.text(inner, "matchExpressions.operator", requirement.op);
    if (key == "values") {
      return fields.array(inner, "matchExpressions.values", [&](Value item) {
        return requirement.values.size() >= kMostEntries ||
               fields.text(item, "matchExpressions.values", requirement.values.emplace_back());
      });
    }
    return true;
  });
}

// Of `affinity`: nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms, one item for each term.
inline bool read_node_affinity(Fields& fields, Value value, std::vector<std::vector<NodeSelectorRequirement>>& out) {
  auto term = [&](Value item) {
    if (out.size() >= kMostEntries) return true;
    auto& requirements = out.emplace_back();
    return fields.object(item, "nodeSelectorTerms", [&](std::string_view key, Value inner) {
      if (key != "matchExpressions" && key != "matchFields") return true;
      return fields.array(inner, "matchExpressions", [&](Value expression) {
        return requirements.size() >= kMostEntries || read_requirement(fields, expression, requirements.emplace_back());
      });
    });
  };
  return fields.object(value, "affinity", [&](std::string_view kind, Value node_affinity) {
    if (kind != "nodeAffinity") return true;
    return fields.object(node_affinity, "affinity.nodeAffinity", [&](std::string_view when, Value required) {
      if (when != "requiredDuringSchedulingIgnoredDuringExecution") return true;
      return fields.object(required, "affinity.nodeAffinity", [&](std::string_view key, Value terms) {
        return key == "nodeSelectorTerms" ? fields.array(terms, "nodeSelectorTerms", term) : true;
      });
    });
  });
}

}  // namespace gso::json
