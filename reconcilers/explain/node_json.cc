#include "reconcilers/explain/node_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson counts_json(const SliceCounts& slices) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [gigabytes, count] : slices) out[std::to_string(gigabytes)] = count;
  return out;
}

}  // namespace

OrderedJson slices_json(const std::vector<GpuBar>& bars) {
  OrderedJson out = OrderedJson::array();
  for (const GpuBar& bar : bars) {
    out.push_back({{"gpu", bar.gpu},
                   {"memoryMiB", bar.memory_mib},
                   {"used", counts_json(bar.slices.used)},
                   {"free", counts_json(bar.slices.free)}});
  }
  return out;
}

OrderedJson explanation_json(const NodeExplanation& e) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& row : e.rows) {
    rows.push_back({{"what", row.what}, {"expected", row.expected}, {"observed", row.observed}, {"fits", row.fits()}});
  }
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : e.findings) {
    findings.push_back(to_json(finding));
    const auto remedy = e.remedies.find(finding.reason);
    findings.back()["remedy"] = remedy == e.remedies.end() ? std::string_view() : remedy->second;
  }
  OrderedJson pods = OrderedJson::array();
  for (const auto& pod : e.pods) {
    pods.push_back({{"namespace", pod.ns},
                    {"name", pod.name},
                    {"component", pod.component},
                    {"ready", pod.ready},
                    {"requests", pod.requests}});
  }
  return {{"version", kExplanationVersion},
          {"replicas", e.replicas},
          {"capacity", e.capacity},
          {"allocatable", e.allocatable},
          {"pods", std::move(pods)},
          {"node", e.node},
          {"state", e.shown.state},
          {"message", e.shown.message},
          {"check", e.check},
          {"remedy", e.remedy},
          {"provider", e.provider},
          {"plugin", e.plugin},
          {"policy", e.policy},
          {"profile", e.profile},
          {"source", e.source},
          {"strategy", e.strategy},
          {"loaded", e.loaded},
          {"target", e.target},
          {"shows", std::move(rows)},
          {"slices", slices_json(e.slices)},
          {"notes", e.notes},
          {"operands", e.operands},
          {"consumers", e.consumers},
          {"findings", std::move(findings)},
          {"options", e.options},
          {"next", e.next}};
}

}  // namespace gso
