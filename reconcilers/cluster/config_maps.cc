#include "reconcilers/cluster/config_maps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "reconcilers/cluster/record.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/profile/field_names.h"

namespace gso {

bool has_room(const ConfigMap& config_map, std::string_view key, std::string_view text, std::size_t more) {
  constexpr std::size_t kMostBytes = 1'000'000;
  std::size_t bytes = more + key.size() + text.size();
  for (const auto& [name, content] : config_map.data)
    if (name != key) bytes += name.size() + (content ? content->size() : 0);
  return bytes <= kMostBytes;
}

void follow_config_map_times(World& world, std::function<WallTime()> now) {
  world.configmaps.add_listener(
      [&world, now = std::move(now)](const ObjectKey& key, const auto& before, const auto& after) {
        if (after == nullptr || after->data_time_known) {
          world.data_seen_since.erase(key);
          return;
        }
        const bool known = world.data_seen_since.contains(key) && before != nullptr && same_data(*before, *after);
        if (!known) world.data_seen_since[key] = now();
      });
}

std::optional<WallTime> data_known_since(const World& world, const ConfigMap& config_map) {
  if (config_map.data_time_known) return config_map.data_changed;
  const auto seen = world.data_seen_since.find(config_map.meta.key());
  return seen == world.data_seen_since.end() ? std::nullopt : std::optional(seen->second);
}

std::optional<WallTime> data_known_since(const World& world, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  return found == nullptr ? std::nullopt : data_known_since(world, *found);
}

namespace {

// Of "namespace/name".
ObjectKey key_of(const std::string& id) {
  const std::size_t slash = id.find('/');
  return slash == std::string::npos ? ObjectKey{"", id} : ObjectKey{id.substr(0, slash), id.substr(slash + 1)};
}

// Of the ConfigMap that was paused; null: none was.
const std::string* recorded_uid(const FleetRecord* record, const ObjectKey& config_map) {
  if (record == nullptr) return nullptr;
  const auto known = record->paused_config_maps.find(k8s::to_string(config_map));
  return known == record->paused_config_maps.end() ? nullptr : &known->second;
}

}  // namespace

bool is_replaced(const World& world, const FleetRecord* record, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  const std::string* uid = recorded_uid(record, config_map);
  return found != nullptr && uid != nullptr && found->meta.uid.str() != *uid;
}

ConfigMapPause pause_of(const World& world, const FleetRecord* record, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  const auto value = found == nullptr ? std::nullopt : found->meta.annotations.get(kPausedAnnotation);
  if (is_switched_on(value)) return ConfigMapPause::annotation;
  if (recorded_uid(record, config_map) == nullptr) return ConfigMapPause::none;
  const bool lifted = found != nullptr && ((value && says_no(*value)) || !is_replaced(world, record, config_map));
  return lifted ? ConfigMapPause::none : ConfigMapPause::record;
}

std::string describe(ConfigMapPause pause, const ObjectKey& config_map) {
  if (pause == ConfigMapPause::none) return {};
  const std::string id = k8s::to_string(config_map);
  if (pause == ConfigMapPause::annotation)
    return fmt::format("ConfigMap {} has the annotation {}", id, kPausedAnnotation);
  return fmt::format(
      "ConfigMap {} had the annotation {} when it was deleted, and the pause still applies. To end it: `{}`", id,
      kPausedAnnotation, end_pause_command(config_map));
}

std::string end_pause_command(const ObjectKey& config_map) {
  return fmt::format("kubectl annotate configmap {} --namespace {} {}=false --overwrite", config_map.name,
                     config_map.ns, kPausedAnnotation);
}

std::map<std::string, std::string> update_paused_config_maps(const FleetRecord& record, const World& world,
                                                             const std::vector<PluginInstallation>& installations) {
  // A ConfigMap that is known stays known while its DaemonSets are temporarily missing.
  std::map<std::string, std::string> out = record.paused_config_maps;
  for (const PluginInstallation& installation : installations)
    if (!installation.config_map.empty()) out.try_emplace(k8s::to_string(installation.config_map_key()));
  for (auto& [id, uid] : out) {
    const ObjectKey key = key_of(id);
    const ConfigMapPause pause = pause_of(world, &record, key);
    if (pause == ConfigMapPause::none) uid.clear();
    if (pause == ConfigMapPause::annotation) uid = world.configmaps.find(key)->meta.uid.str();
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.empty(); });
  return out;
}

std::string missing_key(const SharingPolicy& policy, std::string_view id, const ConfigMap& config_map) {
  const std::vector<std::string> keys = keys_of(config_map);
  return fmt::format(
      "policy {} names the key \"{}\" (spec.profile.configMapKey), which ConfigMap {} does not have{}; it has {}",
      policy.meta.name, shown_value(*policy.config_map_key), id, key_advice(*policy.config_map_key, keys),
      first_names(keys));
}

bool relies_on_single_key(const PluginInstallation& installation, const ConfigMap& config_map) {
  const std::vector<std::string> keys = keys_of(config_map);
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    return !operand.config_map.empty() &&
           resolve_effective_key("", operand.default_key, operand.fallbacks, keys).source ==
               EffectiveKey::Source::fallback_single;
  });
}

namespace {

// Key -> nodes whose label names it.
std::map<std::string, std::vector<std::string>> labelled_nodes(const World& world,
                                                               const PluginInstallation& installation) {
  std::map<std::string, std::vector<std::string>> out;
  for (const Node* node : in_order(world.nodes)) {
    const Operand* plugin = installation.find(Component::plugin, *node);
    if (plugin == nullptr || plugin->config_map != installation.config_map || plugin->node_label.empty()) continue;
    if (const auto key = node->meta.labels.get(plugin->node_label)) out[std::string(*key)].push_back(node->meta.name);
  }
  return out;
}

}  // namespace

KeyUsers::KeyUsers(const World& world, const ObjectKey& config_map) {
  for (const PluginInstallation& installation : discover(world).installations) {
    if (installation.config_map_key() != config_map) continue;
    for (const auto& [key, nodes] : labelled_nodes(world, installation))
      users_[key].push_back(fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", first_names(nodes)));
    for (const Operand& operand : installation.operands) {
      if (operand.component != Component::plugin || operand.default_key.empty()) continue;
      users_[operand.default_key].push_back(fmt::format("DaemonSet {} (DEFAULT_CONFIG)", k8s::to_string(operand.key)));
    }
  }
  for (const SharingPolicy* policy : in_order(world.policies))
    if (policy->config_map_key) users_[*policy->config_map_key].push_back("policy " + policy->meta.name);
}

std::string KeyUsers::of(const std::string& key) const {
  const auto found = users_.find(key);
  if (found == users_.end()) return {};
  const std::vector<std::string>& users = found->second;
  if (users.size() == 1) return users.front();
  return fmt::format("{} and {}", fmt::join(users.begin(), users.end() - 1, ", "), users.back());
}

namespace {

struct OwnerMark {
  std::string_view prefix;  // Of an annotation's or label's key, or of a manager's name.
  std::string_view tool;
  bool of_manager = false;
};
constexpr OwnerMark kSyncMarks[] = {{"argocd.argoproj.io/", "Argo CD"},
                                    {"kustomize.toolkit.fluxcd.io/", "Flux"},
                                    {"helm.toolkit.fluxcd.io/", "Flux"},
                                    {"argocd", "Argo CD", true},
                                    {"kustomize-controller", "Flux", true},
                                    {"helm-controller", "Flux", true},
                                    {"flux", "Flux", true},
                                    {"source-controller", "Flux", true}};
// Flux's helm-controller also leaves these: they come last.
constexpr OwnerMark kHelmMarks[] = {{"meta.helm.sh/release-name", "Helm"}, {"helm", "Helm", true}};

// Nobody is known by an empty tool.
GitOpsOwner owner_by(std::span<const OwnerMark> marks, const ConfigMap& config_map) {
  const std::pair<std::string_view, const StringMap&> keys[] = {{"annotations", config_map.meta.annotations},
                                                                {"labels", config_map.meta.labels}};
  for (const auto& [field, map] : keys) {
    for (const OwnerMark& mark : marks) {
      for (const auto& entry : map) {
        if (mark.of_manager || !entry.key.view().starts_with(mark.prefix)) continue;
        return {mark.tool, fmt::format("{} {}={}", field, entry.key.view(), shown_value(entry.value.view())), false};
      }
    }
  }
  for (const Interned& manager : config_map.data_managers) {
    for (const OwnerMark& mark : marks) {
      if (!mark.of_manager || !manager.view().starts_with(mark.prefix)) continue;
      return {mark.tool, fmt::format("field manager {}", shown_value(manager.view())), false};
    }
  }
  return {};
}

}  // namespace

GitOpsOwner gitops_owner(const ConfigMap& config_map) {
  GitOpsOwner out = owner_by(kSyncMarks, config_map);
  out.syncs = !out.tool.empty();
  return out.syncs ? out : owner_by(kHelmMarks, config_map);
}

// --- The cache of compiled profiles, and inline profiles as documents.

ProfilePtr known_profile(std::string_view revision, const World& world, const FleetRecord* record,
                         ProfileCache& profiles, const OverriddenErrors& overridden) {
  if (revision.empty() || revision == kInvalidRevision) return nullptr;
  const auto of_revision = [&](ProfilePtr known) {
    return known != nullptr && known->valid && known->revision == revision ? known : nullptr;
  };
  if (ProfilePtr seen = of_revision(profiles.by_revision(revision))) return seen;
  if (record != nullptr) {
    const auto kept = record->texts.find(std::string(revision));
    ProfilePtr known = kept == record->texts.end() ? nullptr : of_revision(profiles.compile(kept->second, overridden));
    if (known != nullptr) return known;
  }
  for (const auto& [key, rollout] : world.rollouts.all()) {
    if (rollout->to_revision != revision || rollout->profile.empty()) continue;
    if (ProfilePtr known = of_revision(profiles.compile(rollout->profile, overridden))) return known;
  }
  return nullptr;
}

namespace {
// The number of contents that are kept even if unused: enough for any fleet's history of one day.
constexpr std::size_t kMaxContents = 512;
// Hex digits of a content's hash in a key's name.
constexpr std::size_t kHash = 10;
// Separates a text from the errors that do not count: no text that contains this character parses.
constexpr char kEndOfText = '\0';
}  // namespace

ProfilePtr ProfileCache::known(const std::string& key) {
  const auto it = by_text_.find(key);
  if (it == by_text_.end()) return nullptr;
  it->second.last_used = ++tick_;
  return it->second.profile;
}

ProfilePtr ProfileCache::compile(std::string_view text) {
  std::string key(text);
  if (ProfilePtr seen = known(key)) return seen;
  auto compiled = std::make_shared<CompiledProfile>();
  compiled->parsed = parse_profile(text);
  return add(std::move(key), std::move(compiled));
}

ProfilePtr ProfileCache::compile(std::string_view text, const OverriddenErrors& overridden) {
  ProfilePtr plain = compile(text);
  if (plain->valid || overridden.empty() || !plain->parsed.accepted) return plain;
  std::string key = fmt::format("{}{}{}", text, kEndOfText, fmt::join(overridden, ","));
  if (ProfilePtr seen = known(key)) return seen;
  auto compiled = std::make_shared<CompiledProfile>();
  compiled->parsed = plain->parsed;
  compiled->overridden = overridden;
  return add(std::move(key), std::move(compiled));
}

ProfilePtr ProfileCache::add(std::string key, std::shared_ptr<CompiledProfile> compiled) {
  compiled->error = compiled->parsed.first_error(compiled->overridden);
  compiled->valid = compiled->error.empty();
  compiled->revision = compiled->valid ? revision_of(compiled->parsed.profile) : std::string(kInvalidRevision);
  ProfilePtr out = std::move(compiled);
  if (out->valid) by_revision_.insert_or_assign(out->revision, out);
  if (by_text_.size() >= kMaxContents) forget_old();
  by_text_.emplace(std::move(key), Entry{out, ++tick_});
  return out;
}

void ProfileCache::forget_old() {
  const std::uint64_t keep_after = tick_ - std::min<std::uint64_t>(tick_, kMaxContents / 2);
  std::erase_if(by_text_, [&](const auto& entry) {
    return entry.second.last_used < keep_after && entry.second.profile.use_count() <= 2;
  });
  std::erase_if(by_revision_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

ProfilePtr ProfileCache::by_revision(std::string_view revision) const {
  auto it = by_revision_.find(revision);
  return it == by_revision_.end() ? nullptr : it->second;
}

std::string ProfileCache::text_of(std::string_view revision) const {
  const auto it =
      std::ranges::find_if(by_text_, [&](const auto& entry) { return entry.second.profile->revision == revision; });
  return it == by_text_.end() ? std::string() : it->first.substr(0, it->first.find(kEndOfText));
}

std::string short_hash(std::string_view text) {
  return print_machine(machine_id(text));  // The same hash, printed alike.
}

bool reads_like_profile(std::string_view text) {
  constexpr std::string_view kSigns[] = {"timeSlicing", "migStrategy", "mps:", "\"mps\"", "sharing:"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

std::string inline_profile_text(const InlineProfile& profile) {
  if (profile.strategy == "none") return "version: v1\n";
  std::string out = "version: v1\nsharing:\n";
  out += profile.strategy == "mps" ? "  mps:\n" : "  timeSlicing:\n";
  if (profile.rename_by_default) out += "    renameByDefault: true\n";
  if (profile.fail_requests_greater_than_one)
    out += fmt::format("    failRequestsGreaterThanOne: {}\n", *profile.fail_requests_greater_than_one);
  // Quoted by JSON's rules, so that no name can change the document's structure.
  std::string name;
  for (const char c : profile.resource) {
    if (c == '"' || c == '\\') name += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) name += c;
  }
  out += fmt::format("    resources:\n    - name: \"{}\"\n      replicas: {}\n", name, profile.replicas);
  return out;
}

std::string inline_profile_key(std::string_view policy, const InlineProfile& profile) {
  constexpr std::size_t kMaxKey = 63;
  const std::string hash = short_hash(inline_profile_text(profile)).substr(0, kHash);
  std::string name;
  for (const char c : policy) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
    name += plain ? c : '-';
  }
  const std::size_t room = kMaxKey - std::string_view("gso--").size() - hash.size();
  return fmt::format("gso-{}-{}", name.substr(0, room), hash);
}

bool is_text_of_key(std::string_view text, std::string_view key) {
  return is_managed_key(key) && key.ends_with(short_hash(text).substr(0, kHash));
}

bool is_managed_key(std::string_view key) {
  if (!key.starts_with("gso-") || key.size() < 5 + kHash + 1) return false;
  const std::string_view tail = key.substr(key.size() - kHash - 1);
  return tail[0] == '-' &&
         std::ranges::all_of(tail.substr(1), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace gso
