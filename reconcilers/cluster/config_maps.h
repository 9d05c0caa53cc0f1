// ConfigMaps with profiles: their keys and who uses them, since when they have their data, whether they are paused,
// full, or synced by another program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct FleetRecord;    // reconcilers/cluster/record.h
struct InlineProfile;  // reconcilers/model/policy.h

// --- The keys of a ConfigMap, for messages and for what chooses among them.

// In their order.
[[nodiscard]] inline std::vector<std::string> keys_of(const ConfigMap& config_map) {
  std::vector<std::string> out;
  out.reserve(config_map.data.size());
  for (const auto& [key, text] : config_map.data) out.push_back(key);
  return out;
}

// --- Whether a ConfigMap can take another key. The API server refuses a ConfigMap with more than 1 MiB of data
// (ValidateConfigMap in pkg/apis/core/validation).

// A key of this name and text can be added, after `more` bytes that are to be added as well. Some room stays for what
// others write.
[[nodiscard]] bool has_room(const ConfigMap& config_map, std::string_view key, std::string_view text,
                            std::size_t more = 0);

// --- Since when the data of a ConfigMap has its present value, if its managedFields do not show it.

// Keeps World::data_seen_since up to date from now on: for a ConfigMap without managedFields for its data, the moment
// at which this process first saw its present data. `world` outlives its stores' listeners. Call it once, before the
// stores fill.
void follow_config_map_times(World& world, std::function<WallTime()> now);

// Since when the data has certainly had its present value; nullopt if that cannot be proved.
[[nodiscard]] std::optional<WallTime> data_known_since(const World& world, const ConfigMap& config_map);
// nullopt also if the ConfigMap does not exist.
[[nodiscard]] std::optional<WallTime> data_known_since(const World& world, const ObjectKey& config_map);

// --- The pause of a plugin's ConfigMap (annotation gpusharing.dev/paused). It is a stop that a person has set, so it
// outlives the object: `helm upgrade --force` or a GitOps replace deletes a ConfigMap and creates it without the
// annotation.

enum class ConfigMapPause : std::uint8_t {
  none,
  annotation,  // The ConfigMap has the annotation.
  record,  // It had it when it was deleted: it is missing, or another one has taken its place without the annotation.
};
// `record`: null if there is none. A ConfigMap that keeps its uid and loses the annotation is not paused any more; a
// new one must say that it is not (annotation "false").
[[nodiscard]] ConfigMapPause pause_of(const World& world, const FleetRecord* record, const ObjectKey& config_map);
// A paused ConfigMap has been deleted and another one has its name: only the annotation "false" ends the pause.
[[nodiscard]] bool is_replaced(const World& world, const FleetRecord* record, const ObjectKey& config_map);
// For people; empty: not paused.
[[nodiscard]] std::string describe(ConfigMapPause pause, const ObjectKey& config_map);
// Ends it, whatever paused the ConfigMap. `rollout resume` does the same where the CRDs are installed.
[[nodiscard]] std::string end_pause_command(const ObjectKey& config_map);

// What FleetRecord::paused_config_maps must contain now.
[[nodiscard]] std::map<std::string, std::string> update_paused_config_maps(
    const FleetRecord& record, const World& world, const std::vector<PluginInstallation>& installations);

// --- Keys of the plugin's ConfigMap that SharingPolicies name or add.

// Why a policy's configMapKey cannot be used; `id` names the ConfigMap ("namespace/name") that does not have it.
[[nodiscard]] std::string missing_key(const SharingPolicy& policy, std::string_view id, const ConfigMap& config_map);
// Nodes get the ConfigMap's only key by the fallback "single": a second key would end that fallback.
[[nodiscard]] bool relies_on_single_key(const PluginInstallation& installation, const ConfigMap& config_map);

// --- Who uses the keys of a ConfigMap with profiles, as far as the stores show it: what their removal would break.

// Reads the stores once, however many keys are asked for: a ConfigMap can have a key for each of thousands of nodes.
class KeyUsers {
 public:
  KeyUsers(const World& world, const ObjectKey& config_map);
  // Nodes of the device plugins that mount the ConfigMap, if their label names the key; plugins whose default it is;
  // and SharingPolicies that name it. For people: "node a, DaemonSet b/c (DEFAULT_CONFIG) and policy d"; empty: nobody.
  [[nodiscard]] std::string of(const std::string& key) const;

 private:
  std::map<std::string, std::vector<std::string>> users_;  // Key -> for people.
};

// --- Whether a program syncs a ConfigMap from another source, by the marks that it leaves on the object.

struct GitOpsOwner {
  std::string_view tool;  // "Argo CD", "Flux", "Helm"; empty: nobody is known.
  std::string mark;       // "labels kustomize.toolkit.fluxcd.io/name=gpu", "field manager argocd-controller"
  // It undoes an edit by itself. Helm does not: it writes at the next upgrade.
  bool syncs = false;
};
[[nodiscard]] GitOpsOwner gitops_owner(const ConfigMap& config_map);

// --- Profiles compiled once per content: text -> parsed profile and revision, shared by every node that uses it, and
// found again by revision while a rollout away from it is under way.

// Codes of errors that are overridden on a node, because its DaemonSets have settings of their own (operand.h).
using OverriddenErrors = std::set<std::string_view>;  // Of static text.

struct CompiledProfile {
  ParsedProfile parsed;
  bool valid = false;
  std::string error;            // The first error that counts, as "line 7: …"; empty if valid.
  OverriddenErrors overridden;  // Errors of these codes do not count.
  std::string revision;         // kInvalidRevision when not valid.
  [[nodiscard]] const Profile& profile() const { return parsed.profile; }
};
using ProfilePtr = std::shared_ptr<const CompiledProfile>;

// Recorded for a node whose profile is invalid: differs from every real revision, so a fix is a change.
inline constexpr std::string_view kInvalidRevision = "v1-0000000000000000";

class ProfileCache {
 public:
  // Compiles the text, or returns the earlier result for the same text. The empty text is "no sharing".
  ProfilePtr compile(std::string_view text);
  // With the codes of errors that do not count.
  ProfilePtr compile(std::string_view text, const OverriddenErrors& overridden);
  // Any content seen with that revision, or nullptr.
  [[nodiscard]] ProfilePtr by_revision(std::string_view revision) const;
  // A text of that revision, or empty.
  [[nodiscard]] std::string text_of(std::string_view revision) const;
  [[nodiscard]] std::size_t size() const { return by_text_.size(); }

 private:
  ProfilePtr known(const std::string& key);
  ProfilePtr add(std::string key, std::shared_ptr<CompiledProfile> compiled);
  void forget_old();
  struct Entry {
    ProfilePtr profile;
    std::uint64_t last_used = 0;
  };
  std::unordered_map<std::string, Entry> by_text_;
  std::map<std::string, ProfilePtr, std::less<>> by_revision_;
  std::uint64_t tick_ = 0;
};

// Whether a value of some ConfigMap looks like a profile.
[[nodiscard]] bool reads_like_profile(std::string_view text);

// The document of an inline profile, and its key ("gso-<policy>-<hash>", at most 63 characters, a valid label value).
[[nodiscard]] std::string inline_profile_text(const InlineProfile& profile);
[[nodiscard]] std::string inline_profile_key(std::string_view policy, const InlineProfile& profile);
// True for keys of that form.
[[nodiscard]] bool is_managed_key(std::string_view key);

// True if the hash in the key's name is the hash of this text.
[[nodiscard]] bool is_text_of_key(std::string_view text, std::string_view key);

// 16 hex digits (FNV-1a, 64 bits) for names and condition names; no cryptographic promise.
[[nodiscard]] std::string short_hash(std::string_view text);

// --- The profile of a revision that need not be in its ConfigMap any more: somebody has edited the key since.

// From a text that this process has seen, else from the record, else from a SharingRollout: only the last two survive a
// restart of the operator. `record` may be null. `overridden`: as for ProfileCache::compile(). Null: none of them has a
// valid text of that revision.
[[nodiscard]] ProfilePtr known_profile(std::string_view revision, const World& world, const FleetRecord* record,
                                       ProfileCache& profiles, const OverriddenErrors& overridden);

}  // namespace gso
