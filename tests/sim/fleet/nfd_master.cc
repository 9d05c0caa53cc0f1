#include "tests/sim/fleet/nfd_master.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/selectors.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr std::string_view kDefaultPrefix = "feature.node.kubernetes.io/";
constexpr const char* kNodeName = "nfd.node.kubernetes.io/node-name";

std::set<std::string> owned_keys(const json& node) {
  std::set<std::string> keys;
  std::string list = text(annotations(node), kFeatureLabels);
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string key = list.substr(0, comma);
    if (key.find('/') == std::string::npos) key = std::string(kDefaultPrefix) + key;
    keys.insert(std::move(key));
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return keys;
}

std::string key_list(const std::map<std::string, std::string>& labels) {
  std::string list;
  for (const auto& [key, value] : labels) {
    if (!list.empty()) list += ',';
    list += key.starts_with(kDefaultPrefix) ? key.substr(kDefaultPrefix.size()) : key;
  }
  return list;
}

}  // namespace

void NfdMaster::add_node(const std::string& node) {
  worker_[node] = {{"feature.node.kubernetes.io/pci-10de.present", "true"},
                   {"feature.node.kubernetes.io/cpu-model.vendor_id", "AMD"},
                   {"feature.node.kubernetes.io/kernel-version.major", "6"}};
  dirty(node);
}

void NfdMaster::remove_node(const std::string& node) {
  gone_.insert(node);
}

void NfdMaster::hand_over(const std::string& node, const Labels& labels) {
  if (handed_over_[node] == labels) return;
  handed_over_[node] = labels;
  dirty(node);
}

void NfdMaster::on_node_feature(const JsonPtr& before, const JsonPtr& after) {
  const json& object = after != nullptr ? *after : *before;
  const std::string& node = text(labels(object), kNodeName);
  if (node.empty()) return;
  const k8s::ObjectKey key{namespace_of(object), name_of(object)};
  if (after == nullptr)
    features_[node].erase(key);
  else
    features_[node][key] = member(*after, "spec").value("labels", Labels{});
  dirty(node);
}

// Batches changes, at least a second apart.
void NfdMaster::dirty(const std::string& node) {
  if (!dirty_.insert(node).second) return;
  site_->after(site_->pace.timing().nfd_batch, life_, [this, node] {
    dirty_.erase(node);
    reconcile(node);
  });
}

void NfdMaster::reconcile(const std::string& node) {
  if (site_->faults.nfd_down || gone_.contains(node)) return;
  JsonPtr live = site_->nodes.find({"", node});
  if (live == nullptr) return dirty(node);  // Not registered yet.
  Labels desired = worker_[node];
  for (const auto& [key, value] : handed_over_[node]) desired[key] = value;
  for (const auto& [feature, labels] : features_[node])
    for (const auto& [key, value] : labels) desired[key] = value;
  std::erase_if(desired, [](const auto& label) {
    return k8s::label_value_problem(label.second).has_value() || k8s::label_key_problem(label.first).has_value();
  });
  json changes = json::object();
  const json& current = labels(*live);
  for (const auto& [key, value] : desired)
    if (!current.contains(key) || text(current, key) != value) changes[key] = value;
  for (const std::string& key : owned_keys(*live))
    if (!desired.contains(key) && current.contains(key)) changes[key] = nullptr;
  const std::string list = key_list(desired);
  json patch;
  if (!changes.empty()) patch["metadata"]["labels"] = changes;
  if (text(annotations(*live), kFeatureLabels) != list) patch["metadata"]["annotations"][kFeatureLabels] = list;
  if (patch.is_null()) return;
  outbox_.push({.gvr = kNodes, .key = {"", node}, .body = patch.dump()});
}

}  // namespace gso::sim
