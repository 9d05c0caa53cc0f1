// The text that `rollout diff --file` compares with: a profile or a whole ConfigMap, and what it concerns.
#pragma once

#include <string>
#include <vector>

#include "controller/commands/rollout/verbs.h"
#include "k8sclient/value/error.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet.h"

namespace gso {

struct EditedText {
  std::vector<GivenText> maps;  // One for each ConfigMap that it concerns.
  std::string invalid;          // Of a text that no plugin would take: each key and its first error.
  std::vector<std::string> invalid_keys;
};
// Errors (`invalid`): the file has several documents, and only the first would be read; or --key goes with a
// SharingPolicy, which has no key.
[[nodiscard]] k8s::Result<void> check_file(const RolloutCall& call);
// call.input. Errors (`invalid`): it is neither a ConfigMap that a device plugin mounts nor a profile, or its key is
// unknown.
[[nodiscard]] k8s::Result<EditedText> read_edited_text(const RolloutCall& call,
                                                       const std::vector<PluginInstallation>& installations);

// A key that goes while nodes use it.
struct DroppedKey {
  std::string config_map;
  std::string key;
  std::vector<std::string> nodes;
};
// What a whole ConfigMap leaves out, and who uses it now. `index` is that of the world without it.
[[nodiscard]] std::vector<DroppedKey> dropped_keys(const World& world, const FleetIndex& index,
                                                   const EditedText& edited);

}  // namespace gso
