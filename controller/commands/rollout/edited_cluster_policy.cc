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
  std::vector<FieldChange> out{
      {"spec.devicePlugin.enabled", fmt::to_string(before.device_plugin_enabled),
       fmt::to_string(after.device_plugin_enabled)},
      {"spec.devicePlugin.config.name", before.config_name, after.config_name},
      {"spec.devicePlugin.config.default", before.config_default, after.config_default},
  };
  std::erase_if(out, [](const FieldChange& field) { return field.before == field.after; });
  return out;
}

constexpr std::string_view kFollowed[] = {"spec.devicePlugin.enabled", "spec.devicePlugin.config",
                                          "spec.devicePlugin.config.name", "spec.devicePlugin.config.default"};
bool is_followed(std::string_view path) {
  return std::ranges::find(kFollowed, path) != std::end(kFollowed);
}

// Adds the fields of `given` that differ from `present` (null: it has none) and that the preview does not follow.
void add_not_previewed(const nlohmann::json& given, const nlohmann::json* present, const std::string& path,
                       std::vector<std::string>& out) {
  if (given.is_object() && (present == nullptr || present->is_object())) {
    for (const auto& [name, value] : given.items())
      add_not_previewed(value, present == nullptr ? nullptr : member_at(*present, name), path + "." + name, out);
    return;
  }
  const bool is_same = present == nullptr ? given.is_null() : given == *present;
  if (!is_same && !is_followed(path)) out.push_back(path);
}

// Adds the fields of `present` that `given` (null: all of them) leaves out and that the preview does not follow: the
// outermost ones, and not those without a value.
void add_left_out(const nlohmann::json& present, const nlohmann::json* given, const std::string& path,
                  std::vector<std::string>& out) {
  if (present.empty() || is_followed(path)) return;
  const bool holds_followed =
      std::ranges::any_of(kFollowed, [&](std::string_view followed) { return followed.starts_with(path + "."); });
  if (given == nullptr && !holds_followed) return out.push_back(path);
  if (!present.is_object() || (given != nullptr && !given->is_object())) return;
  for (const auto& [name, value] : present.items())
    add_left_out(value, given == nullptr ? nullptr : member_at(*given, name), path + "." + name, out);
}

// A merge patch with a field beside `spec` that belongs below it; the API server would drop it. Empty: it has none.
std::string misplaced_field(const OrderedJson& patch) {
  static constexpr std::string_view kFields[] = {"apiVersion", "kind", "metadata", "spec", "status"};
  for (const auto& [name, value] : patch.items())
    if (std::ranges::find(kFields, name) == std::end(kFields)) return shown_value(name);
  return {};
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

k8s::Result<EditedFile> apply_cluster_policy(RolloutCall& call, const k8s::Result<std::string>& json) {
  const bool is_patch = !call.options.cluster_policy_patch.empty();
  OrderedJson object = OrderedJson::parse(json.value_or(std::string()), nullptr, false);
  if (!object.is_object())
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("--clusterpolicy-patch is no merge patch, as `kubectl patch --type merge` takes it: "
                                 "{{\"spec\": {{\"devicePlugin\": {{\"config\": {{\"default\": \"KEY\"}}}}}}}}{}",
                                 json ? std::string() : fmt::format(" ({})", json.error().message)));
  if (const std::string field = is_patch ? misplaced_field(object) : std::string(); !field.empty())
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("--clusterpolicy-patch: a ClusterPolicy has no field {0}, and the API server would "
                                 "ignore it. A field of the spec belongs below it: {{\"spec\": {{\"{0}\": ...}}}}",
                                 field));
  const k8s::Result<const ClusterPolicy*> found =
      present_policy(call, is_patch ? std::string() : text_at(object_at(object, "metadata"), "name"));
  if (!found) return std::unexpected(found.error());
  const ClusterPolicy present = **found;
  EditedFile file;
  ClusterPolicyPreview& out = file.cluster_policy.emplace();
  if (const auto* spec = member_at(object, "spec")) out.given = spec->dump();
  if (is_patch) {
    OrderedJson patched = json_of(present);
    patched.merge_patch(object);
    call.input = patched.dump(2);  // Findings show its lines.
    object = std::move(patched);
  }
  out.name = present.meta.name;
  out.documents = lint_text(is_patch ? "the patched ClusterPolicy" : call.options.file, call.input, PodRules());
  file.invalid_keys = {"ClusterPolicy " + out.name};
  for (const LintedDocument& document : out.documents)
    for (const Diagnostic& d : document.diagnostics)
      if (d.severity == Severity::error && file.invalid.empty())
        file.invalid = fmt::format("{}: {}", d.path, d.message);
  const k8s::Result<ClusterPolicy> read = project_clusterpolicy(object.dump());
  if (!read) return std::unexpected(read.error());
  out.fields = changes_between(present, *read);
  for (const PluginInstallation& installation : call.index.installations())
    if (installation.owner == out.name)
      out.staged = read->device_plugin_enabled && std::ranges::all_of(installation.operands, &Operand::on_delete);
  ClusterPolicy next = present;  // Only what the preview follows.
  next.device_plugin_enabled = read->device_plugin_enabled;
  next.config_name = read->config_name;
  next.config_default = read->config_default;
  call.world.clusterpolicies.apply(std::move(next));
  return file;
}

boost::asio::awaitable<k8s::Result<void>> read_announced(RolloutCall* call, ClusterPolicyPreview* preview) {
  const k8s::Result<std::string> present =
      co_await call->client->get(resources::cluster_policies, ObjectKey{"", preview->name});
  if (!present)
    co_return k8s::fail(present.error().reason,
                        explain_error(present.error(), "get", resources::cluster_policies, std::string()));
  const auto object = nlohmann::json::parse(*present, nullptr, false);
  const auto given = nlohmann::json::parse(preview->given, nullptr, false);
  const nlohmann::json* spec = member_at(object, "spec");
  add_not_previewed(given, spec, "spec", preview->not_previewed);
  if (spec != nullptr && call->options.cluster_policy_patch.empty())
    add_left_out(*spec, &given, "spec", preview->left_out);
  preview->not_previewed.insert(preview->not_previewed.end(), preview->left_out.begin(), preview->left_out.end());
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
  const bool is_same = preview.fields.empty() && preview.not_previewed.size() == preview.left_out.size();
  print_line(out, "ClusterPolicy {} ({}{})", preview.name, is_same ? "unchanged" : "changed",
             is_same && !preview.left_out.empty() ? ", except for fields that the file leaves out" : "");
  for (const FieldChange& field : preview.fields)
    print_line(out, "  {} {} -> {}", field.field, shown_value(or_none(field.before)),
               shown_value(or_none(field.after)));
  if (!preview.not_previewed.empty())
    print_line(
        out,
        "The effect of {} is not part of this preview: the GPU Operator might replace pods of its DaemonSets for "
        "that, on nodes that are not named here, too",
        first_names(preview.not_previewed));
  if (!preview.left_out.empty())
    print_line(out,
               "Not in the file: {}. `kubectl replace` removes them, `kubectl apply` those that it had applied before",
               first_names(preview.left_out));
}

}  // namespace gso
