// A ClusterPolicy that is about to be edited or patched, into the world: what its DaemonSets will run is announced
// then.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/commands/rollout/edited_file.h"
#include "controller/commands/shared/print.h"
#include "controller/reading/reads.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

namespace {

// What of it decides about the device plugin, as the API server keeps it: a merge patch applies to that.
OrderedJson json_of(const ClusterPolicy& policy) {
  OrderedJson config = OrderedJson::object();
  if (!policy.config_name.empty()) config["name"] = policy.config_name;
  if (!policy.config_default.empty()) config["default"] = policy.config_default;
  return {{"apiVersion", "nvidia.com/v1"},
          {"kind", "ClusterPolicy"},
          {"metadata", {{"name", policy.meta.name}}},
          {"spec", {{"devicePlugin", {{"enabled", policy.device_plugin_enabled}, {"config", std::move(config)}}}}}};
}

std::vector<FieldChange> changes_between(const ClusterPolicy& before, const ClusterPolicy& after) {
  const auto enabled = [](const ClusterPolicy& policy) {
    return std::string(policy.device_plugin_enabled ? "true" : "false");
  };
  std::vector<FieldChange> out{
      {"spec.devicePlugin.enabled", enabled(before), enabled(after)},
      {"spec.devicePlugin.config.name", before.config_name, after.config_name},
      {"spec.devicePlugin.config.default", before.config_default, after.config_default},
  };
  std::erase_if(out, [](const FieldChange& field) { return field.before == field.after; });
  return out;
}

// The one whose DaemonSets run here. Errors (`invalid`): there is none, or it cannot be read.
k8s::Result<const ClusterPolicy*> present_policy(const RolloutCall& call, const std::string& name) {
  if (call.world.clusterpolicies_forbidden)
    return k8s::fail(k8s::Reason::invalid,
                     "the ClusterPolicy cannot be read: grant get and list on clusterpolicies.nvidia.com");
  for (const PluginInstallation& installation : call.index.installations()) {
    if (installation.provider != Provider::gpu_operator || (!name.empty() && installation.owner != name)) continue;
    if (const ClusterPolicy* found = call.world.clusterpolicies.find(installation.owner)) return found;
  }
  return k8s::fail(k8s::Reason::invalid,
                   fmt::format("no device plugin here is of a ClusterPolicy{}: compare the ConfigMap that it mounts",
                               name.empty() ? "" : " " + name));
}

}  // namespace

k8s::Result<EditedFile> apply_cluster_policy(RolloutCall& call, const std::string& json) {
  const bool is_patch = !call.options.cluster_policy_patch.empty();
  OrderedJson object = OrderedJson::parse(json, nullptr, false);
  if (!object.is_object())
    return k8s::fail(k8s::Reason::invalid,
                     "--clusterpolicy-patch is no merge patch, as `kubectl patch --type merge` takes it: {\"spec\": "
                     "{\"devicePlugin\": {\"config\": {\"default\": \"KEY\"}}}}");
  const k8s::Result<const ClusterPolicy*> found =
      present_policy(call, is_patch ? std::string() : text_at(object_at(object, "metadata"), "name"));
  if (!found) return std::unexpected(found.error());
  const ClusterPolicy present = **found;
  if (is_patch) {
    OrderedJson patched = json_of(present);
    patched.merge_patch(object);
    call.input = patched.dump(2);  // Findings show its lines.
    object = std::move(patched);
  }
  EditedFile file;
  ClusterPolicyPreview& out = file.cluster_policy.emplace();
  out.name = present.meta.name;
  out.documents = lint_text(is_patch ? "the patched ClusterPolicy" : call.options.file, call.input, PodRules());
  file.invalid_keys = {"ClusterPolicy " + out.name};
  for (const LintedDocument& document : out.documents)
    for (const Diagnostic& d : document.diagnostics)
      if (d.severity == Severity::error && file.invalid.empty())
        file.invalid = fmt::format("{}: {}", d.path, d.message);
  k8s::Result<ClusterPolicy> next = project_clusterpolicy(object.dump());
  if (!next) return std::unexpected(next.error());
  out.fields = changes_between(present, *next);
  for (const PluginInstallation& installation : call.index.installations())
    if (installation.owner == out.name) out.staged = std::ranges::all_of(installation.operands, &Operand::on_delete);
  next->meta = present.meta;
  call.world.clusterpolicies.apply(*std::move(next));
  return file;
}

asio::awaitable<k8s::Result<void>> read_announced(RolloutCall* call) {
  FleetIndex index;
  index.refresh(call->world, call->settings);
  for (const PluginInstallation& installation : index.installations()) {
    const ObjectKey key{installation.ns, installation.announced_config_map};
    if (key.name.empty() || call->world.configmaps.find(key) != nullptr) continue;
    const k8s::Result<std::string> answer = co_await call->client->get(resources::config_maps, key);
    if (!answer && answer.error().reason == k8s::Reason::not_found) continue;
    if (!answer)
      co_return k8s::fail(answer.error().reason, explain_error(answer.error(), "get", resources::config_maps, key.ns));
    k8s::Result<ConfigMap> read = project_configmap(*answer);
    if (!read) co_return std::unexpected(read.error());
    call->world.configmaps.apply(*std::move(read));
  }
  co_return k8s::Result<void>();
}

void print_announced(const ClusterPolicyPreview& preview, std::ostream& out) {
  print_line(out, "ClusterPolicy {} ({})", preview.name, preview.fields.empty() ? "unchanged" : "changed");
  for (const FieldChange& field : preview.fields)
    print_line(out, "  {} {} -> {}", field.field, shown_value(or_none(field.before)),
               shown_value(or_none(field.after)));
}

}  // namespace gso
