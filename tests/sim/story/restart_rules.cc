#include "tests/sim/story/restart_rules.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {

using nlohmann::json;

namespace {

bool belongs_to_a_gpu_group(const json& pod) {
  for (const auto& [key, value] : labels(pod).items())
    if (key == kai::kGroupLabel || key.starts_with(kai::kGroupPrefix)) return true;
  return false;
}

}  // namespace

void RestartRules::attach(ApiServer* server) {
  server_ = server;
  server_->add_audit_listener([this](const AuditEntry& entry) { on_write(entry); });
}

void RestartRules::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void RestartRules::on_write(const AuditEntry& entry) {
  if (entry.user != user_ || entry.dry_run || entry.status >= 300 || entry.before == nullptr) return;
  const std::string what = entry.verb + " of " + k8s::to_string(entry.key);
  if (entry.gvr.resource == "pods" && entry.verb == "delete" && entry.subresource.empty()) {
    const json owners = entry.before->at("metadata").value("ownerReferences", json::array());
    if (owners.empty() || owners[0].value("kind", "") != "DaemonSet") return;
    const std::string node = node_of(*entry.before);
    const std::optional<json> on = server_->get(kNodes, {"", node});
    // In progress, what was asked before it began holds; nobody takes a node that has lost its pods half-way back.
    if (on) judge(node, test::read_change(*on).to.empty(), what);
  }
  if (entry.gvr.resource != "nodes" || entry.after == nullptr) return;
  const std::string target = test::read_change(*entry.after).to;
  if (!target.empty() && target != test::read_change(*entry.before).to)
    judge(entry.key.name, true, what + ", to " + target);
}

void RestartRules::judge(const std::string& node, bool begins, const std::string& what) {
  const std::optional<json> on = server_->get(kNodes, {"", node});
  if (!on) return;
  const auto config = loads(*on);
  if (!config)
    return violated("S5: " + what + " restarts " + node + " into a profile with an error: " + config.error());
  if (!begins || !config->shared) return;
  if (const std::string use = kai_use(node); !use.empty())
    violated("S8: " + what + " begins a roll to replicas on " + node + ", whose GPUs KAI shares: " + use);
}

std::expected<PluginConfig, std::string> RestartRules::loads(const json& node) const {
  const std::optional<json> content = server_->get(kConfigMaps, {install_.ns, install_.config_map});
  const std::string key = labels(node).value(kConfigLabel, install_.default_key);
  const json data = content ? content->value("data", json::object()) : json::object();
  if (!data.contains(key)) return std::unexpected("there is no key " + key);
  return read_plugin_config(data[key].get<std::string>(), PluginVersion::of_image(install_.plugin_version));
}

std::string RestartRules::kai_use(const std::string& node) const {
  std::string use;
  for (const auto& pod : server_->view(kPods)) {
    const bool there = node_of(*pod) == node && !has_ended(*pod);
    if (there && belongs_to_a_gpu_group(*pod)) use += " pod " + name_of(*pod);
  }
  for (const auto& request : server_->list(kBindRequests))
    if (request.value("spec", json::object()).value("selectedNode", "") == node && !has_ended(request))
      use += " BindRequest " + name_of(request);
  return use;
}

}  // namespace gso::sim
