// Which key a node gets, and the key's content.
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/foreign_text.h"

namespace gso::check {
namespace {

using Source = EffectiveKey::Source;

std::string sentence(const std::string& text) {
  return text.ends_with('.') ? text : text + ".";
}

bool has_key_error(const Setup& setup) {
  return setup.config_map_exists && setup.profile == nullptr && setup.key.source == Source::error;
}

// Why no default resolves: for a node without a label, and for one whose pods load the default before the label's key.
// Empty if one resolves.
std::string default_error(const Setup& setup) {
  if (has_key_error(setup) && !setup.labelled)
    return fmt::format("ConfigMap {}: {}", shown_value(setup.installation.id()), setup.key.error);
  const bool starts_without =
      setup.valid_profile() != nullptr && setup.start != nullptr && setup.start->source == Source::error;
  if (!starts_without) return {};
  return fmt::format(
      "ConfigMap {}: {}. Plugin {} needs a default key even on a labelled node: its init container does not see the "
      "label, and the next restart of a pod leaves the node without GPUs",
      shown_value(setup.installation.id()), setup.start->error, setup.plugin.version.to_string());
}

}  // namespace

Complaints config_map_missing(const Setup& setup) {
  if (setup.config_map_exists || setup.key.source != Source::error) return {};
  return {{"", setup.key.error}};
}

Complaints key_not_found(const Setup& setup) {
  if (!has_key_error(setup) || !setup.labelled) return {};
  const std::string where = fmt::format("ConfigMap {}: {}", shown_value(setup.installation.id()), setup.key.error);
  const std::string advice =
      setup.label_left
          ? fmt::format(
                "Remove the label {}: the operator generated that key for an inline profile that no policy of "
                "the node has any more",
                setup.plugin.node_label)
          : fmt::format("Correct the label {} (or the policy that sets it), or add the key", setup.plugin.node_label);
  return {{"", fmt::format("{} Pods that start there crash-loop; those that run keep what they have loaded. {}",
                           sentence(where), advice)}};
}

Complaints default_key_not_found(const Setup& setup) {
  if (setup.plugin.default_key.empty()) return {};
  const std::string error = default_error(setup);
  if (error.empty()) return {};
  return {{"", fmt::format("{} Set {} to a key that exists, or add the key", sentence(error),
                           default_key_setting(setup.installation))}};
}

Complaints default_missing(const Setup& setup) {
  if (!setup.plugin.default_key.empty()) return {};
  const std::string error = default_error(setup);
  if (error.empty()) return {};
  const bool label_helps = setup.start == nullptr && setup.plugin.version.known_below(0, 18, 2);
  return {{"", fmt::format("{} Set {}, or allow the fallback \"empty\"{}", sentence(error),
                           default_key_setting(setup.installation),
                           label_helps ? fmt::format(", or label the node {}=<key>", setup.plugin.node_label) : "")}};
}

Complaints default_invalid(const Setup& setup) {
  const bool wrong = setup.valid_profile() != nullptr && setup.start != nullptr && setup.start_profile != nullptr &&
                     !setup.start_profile->valid;
  if (!wrong) return {};
  return {{"", fmt::format("the default key \"{}\" of ConfigMap {} has an error, and plugin {} loads it first at every "
                           "start, even on a labelled node: {}",
                           shown_value(setup.start->key), shown_value(setup.installation.id()),
                           setup.plugin.version.to_string(), setup.start_profile->error)}};
}

Complaints config_invalid(const Setup& setup) {
  if (setup.profile == nullptr || setup.profile->valid) return {};
  return {{"", fmt::format("{} key {}: {}", shown_value(setup.installation.id()), shown_value(setup.key.key),
                           setup.profile->error)}};
}

// Errors in parts of the document that no component on this node reads.
Complaints setting_overridden(const Setup& setup) {
  Complaints out;
  if (setup.valid_profile() == nullptr) return out;
  for (const Diagnostic& d : setup.profile->parsed.diagnostics) {
    if (d.severity != Severity::error || !setup.profile->overridden.contains(d.code)) continue;
    out.push_back({d.path, fmt::format("wrong value in key \"{}\" of ConfigMap {}, without effect on this node: the "
                                       "DaemonSet's own setting overrides it; correct the value anyway",
                                       shown_value(setup.key.key), shown_value(setup.installation.id()))});
  }
  return out;
}

}  // namespace gso::check
