// `rollout diff`: which nodes would restart, and whose pods are in the way, between what the nodes run and the present
// text, or a text that is given. Reads only.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "controller/quota_changes.h"
#include "controller/read_world.h"
#include "controller/rollout_verbs.h"
#include "controller/text_table.h"
#include "reconcilers/labels.h"
#include "reconcilers/manifests.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/what_if.h"

namespace gso {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kInvalidText = 1;

struct Given {
  std::vector<GivenText> maps;  // One for each ConfigMap that it concerns.
  std::string invalid;          // Of a text that no plugin would take.
};

k8s::Result<Given> read_config_map(const World& world, const std::string& json) {
  const k8s::Result<ConfigMap> read = project_configmap(json);
  if (!read) return std::unexpected(read.error());
  const std::string& name = read->meta.name;
  const std::string ns(read->meta.ns.view());
  GivenText text;
  text.whole = true;
  for (const auto& [key, present] : world.configmaps.all()) {
    if (key.name == name && (ns.empty() || key.ns == ns)) text.config_map = key;
  }
  if (text.config_map.name.empty()) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("no device plugin mounts a ConfigMap {}{}{}", ns, ns.empty() ? "" : "/", name));
  }
  for (const auto& [key, value] : read->data) text.keys[key] = value ? *value : std::string();
  Given out;
  out.maps.push_back(std::move(text));
  return out;
}

// A profile: for the key that is named, or the one that is the only, or the plugin's default.
k8s::Result<Given> read_profile(const RolloutCall& call, const std::vector<OperandSet>& sets) {
  Given out;
  for (const OperandSet& set : sets) {
    const ConfigMap* config_map = call.world.configmaps.find(set.config_map_key());
    if (config_map == nullptr) continue;
    std::string key = call.options.key;
    if (key.empty() && config_map->data.size() == 1) key = config_map->data.begin()->first;
    for (const Operand& operand : set.operands) {
      if (key.empty()) key = operand.default_key;
    }
    if (key.empty())
      return k8s::fail(k8s::Reason::invalid,
                       fmt::format("which key of {} the profile is for is not clear: name it with --key", set.id()));
    GivenText text;
    text.config_map = set.config_map_key();
    text.keys[key] = call.input;
    const bool known =
        std::ranges::any_of(out.maps, [&](const GivenText& other) { return other.config_map == text.config_map; });
    if (!known) out.maps.push_back(std::move(text));
  }
  if (out.maps.empty()) return k8s::fail(k8s::Reason::invalid, "no device plugin mounts a ConfigMap");
  return out;
}

k8s::Result<Given> read_given(const RolloutCall& call, const std::vector<OperandSet>& sets) {
  const k8s::Result<std::string> json = yaml_to_json(call.input);
  if (!json) return std::unexpected(json.error());
  const Json document = Json::parse(*json, nullptr, false);
  if (!document.is_object()) return k8s::fail(k8s::Reason::invalid, "a ConfigMap or a profile document is wanted");
  const auto said = document.find("kind");
  const std::string kind = said != document.end() && said->is_string() ? said->get<std::string>() : std::string();
  if (!kind.empty() && kind != "ConfigMap")
    return k8s::fail(k8s::Reason::invalid, fmt::format("kind {} is neither a ConfigMap nor a profile", kind));
  k8s::Result<Given> out = kind.empty() ? read_profile(call, sets) : read_config_map(call.world, *json);
  if (!out) return out;
  for (const GivenText& map : out->maps) {
    for (const auto& [key, text] : map.keys) {
      const ParsedProfile parsed = parse_profile(text);
      if (!parsed.valid())
        out->invalid += fmt::format("{}key {}: {}", out->invalid.empty() ? "" : "; ", key, parsed.first_error());
    }
  }
  return out;
}

std::string join(const std::vector<std::string>& texts, const char* none) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(texts.size(), kMost); ++i) out += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > kMost) out += fmt::format(" and {} more", texts.size() - kMost);
  return out.empty() ? none : out;
}

std::vector<std::string> names_of(const std::vector<Component>& components) {
  std::vector<std::string> out;
  for (const Component component : components) out.emplace_back(to_string(component));
  return out;
}

std::string what_happens(const NodeDifference& d) {
  if (!d.blocked.empty()) return fmt::format("Blocked({})", d.blocked);
  if (d.transition == Transition::none) return std::string(to_string(d.way));
  return fmt::format("{}, {}", to_string(d.way), to_string(d.transition));
}

void print_text(const std::vector<NodeDifference>& all, std::ostream& out) {
  if (all.empty()) {
    out << "No node would change.\n";
    return;
  }
  std::vector<TextRow> rows{{"NODE", "POLICY", "PROFILE", "FROM", "TO", "CHANGE", "RESTARTS", "CORDON", "IN THE WAY"}};
  std::size_t restarts = 0;
  std::size_t busy = 0;
  for (const NodeDifference& d : all) {
    restarts += d.restarts.empty() ? 0 : 1;
    busy += d.in_the_way.empty() ? 0 : 1;
    rows.push_back({d.node, d.policy, d.profile.empty() ? "-" : d.profile, d.from.empty() ? "unknown" : d.from,
                    d.to.empty() ? "-" : d.to, what_happens(d), join(names_of(d.restarts), "-"),
                    d.cordons ? "yes" : "no", join(d.in_the_way, "-")});
  }
  print_table(rows, out);
  for (const NodeDifference& d : all) {
    if (!d.blocked.empty()) out << fmt::format("{}: {}\n", d.node, d.message);
  }
  out << fmt::format("{} node{} would change, {} by restarts; on {} somebody is in the way\n", all.size(),
                     all.size() == 1 ? "" : "s", restarts, busy);
}

Json to_json(const QuotaChange& quota, const OfferChange& offer) {
  return {{"object", quota.object},
          {"field", quota.field},
          {"resource", quota.resource},
          {"offeredBefore", offer.before},
          {"offeredAfter", offer.after}};
}

std::string text_of(const QuotaChange& quota, const OfferChange& offer) {
  return fmt::format("{}: {} means something else: the nodes that change offer {} of {} now, and {} afterwards",
                     quota.object, quota.field, offer.before, quota.resource, offer.after);
}

Json to_json(const NodeDifference& d) {
  return {{"node", d.node},
          {"policy", d.policy},
          {"profile", d.profile},
          {"from", d.from},
          {"to", d.to},
          {"way", to_string(d.way)},
          {"transition", to_string(d.transition)},
          {"restarts", names_of(d.restarts)},
          {"cordon", d.cordons},
          {"workloads", d.workloads == WorkloadMode::evict       ? "Evict"
                        : d.workloads == WorkloadMode::interrupt ? "Interrupt"
                                                                 : "WaitForIdle"},
          {"inTheWay", d.in_the_way},
          {"blocked", d.blocked},
          {"message", d.message}};
}

}  // namespace

asio::awaitable<int> rollout_diff(RolloutCall* call) {
  const k8s::WallTime now = call->clock->now();
  std::string invalid;
  if (!call->options.file.empty()) {
    FleetIndex index;
    index.note_everything_changed();
    index.refresh(call->world, call->settings);
    const k8s::Result<Given> given = read_given(*call, index.operand_sets());
    if (!given) co_return call->refuse(given.error().message);
    invalid = given->invalid;
    for (const GivenText& text : given->maps) {
      const k8s::Result<void> applied = apply_given(call->world, call->settings, text, now);
      if (!applied) co_return call->refuse(applied.error().message);
    }
  }
  std::vector<NodeDifference> all = differences(call->world, call->settings, now);
  for (NodeDifference& difference : all) {
    if (difference.drain == Drain::nothing) continue;
    const k8s::Result<NodeConsumers> consumers =
        co_await read_consumers(call->client, call->clock, &call->world, difference.node);
    if (!consumers) co_return call->refuse(consumers.error().message);
    find_obstacles(difference, call->world, call->settings, *consumers);
  }
  const std::map<std::string, OfferChange> offers = offer_changes(call->world, all);
  std::vector<std::string> incomplete;
  const std::vector<QuotaChange> quotas = co_await quota_changes(call->client, offers, &incomplete);
  for (const std::string& missing : incomplete) *call->err << "incomplete: " << missing << "\n";
  if (call->options.json) {
    Json document{{"nodes", Json::array()}, {"quotas", Json::array()}, {"invalid", invalid}};
    for (const QuotaChange& quota : quotas) document["quotas"].push_back(to_json(quota, offers.at(quota.resource)));
    for (const NodeDifference& difference : all) document["nodes"].push_back(to_json(difference));
    *call->out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_text(all, *call->out);
    for (const QuotaChange& quota : quotas) *call->out << text_of(quota, offers.at(quota.resource)) << "\n";
    if (!invalid.empty()) *call->out << fmt::format("invalid: {}. Nothing would be restarted into it\n", invalid);
  }
  co_return invalid.empty() ? 0 : kInvalidText;
}

}  // namespace gso
