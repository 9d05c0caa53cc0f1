// Keys of inline profiles in the ConfigMap that the plugin mounts. They are named by their content, so a key is never
// edited: it is written before the first node needs it, restored when someone deleted it, and collected long after the
// last node stopped using it. Also since when any key has had its present text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_managed_keys(Pass& pass);  // Writes, restores and collects these keys.
void plan_finalizers(Pass& pass);    // Policies with deletionPolicy Revert wait for their nodes.

// Names the timer of each key's present text (recorded_timers.h): an edit of one key does not restart the time of the
// others.
void run_text_timers(Pass& pass);
// Since when the key has had its present text, according to the ConfigMap and the watch; nullopt: it has none. The
// empty key, of nodes without sharing, has always had its text.
[[nodiscard]] std::optional<WallTime> text_since(const Pass& pass, const PluginInstallation& installation,
                                                 const std::string& key);
// True once the kubelets have certainly projected the present text of that key into running pods.
[[nodiscard]] bool key_is_projected(Pass& pass, const PluginInstallation& installation, const std::string& key);

// Nodes whose annotation gpusharing.dev/owned cannot be read: which policy wrote their label is unknown. By name.
[[nodiscard]] std::vector<std::string> nodes_of_unknown_owner(const Pass& pass);

// Nodes with a profile label of that policy that no plugin with profiles serves at the moment. By name.
[[nodiscard]] std::vector<std::string> unserved_with_label_of(const Pass& pass, std::string_view policy);

}  // namespace gso
