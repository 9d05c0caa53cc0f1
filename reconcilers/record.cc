// FleetRecord <-> JSON.
#include "reconcilers/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gso {

using Json = nlohmann::json;

namespace {
constexpr int kVersion = 1;

k8s::Result<FleetRecord> bad(std::string_view what) {
  return k8s::fail(k8s::Reason::decode, fmt::format("baseline.json: {}", what));
}

bool read_names(const Json& root, const char* field, std::set<std::string>& out) {
  auto it = root.find(field);
  if (it == root.end()) return true;
  if (!it->is_array()) return false;
  for (const Json& name : *it) {
    if (!name.is_string()) return false;
    out.insert(name.get<std::string>());
  }
  return true;
}

// profiles: {"<ns>/<configmap>": {"<key>": {"<revision>": ["node", …]}}}
bool read_profiles(const Json& profiles, FleetRecord& out) {
  if (!profiles.is_object()) return false;
  for (const auto& [set, keys] : profiles.items()) {
    if (!keys.is_object()) return false;
    for (const auto& [key, revisions] : keys.items()) {
      if (!revisions.is_object()) return false;
      for (const auto& [revision, nodes] : revisions.items()) {
        if (!nodes.is_array()) return false;
        const FleetRecord::Entry entry{k8s::Interned(set), k8s::Interned(key), k8s::Interned(revision)};
        for (const Json& node : nodes) {
          if (!node.is_string()) return false;
          out.nodes[node.get<std::string>()] = entry;
        }
      }
    }
  }
  return true;
}
}  // namespace

std::string print_record(const FleetRecord& record) {
  Json profiles = Json::object();
  std::map<std::string_view, const FleetRecord::Entry*> sorted;
  for (const auto& [node, entry] : record.nodes) sorted.emplace(node, &entry);
  for (const auto& [node, entry] : sorted) profiles[std::string(entry->set.view())][std::string(entry->key.view())][std::string(entry->revision.view())].push_back(node);
  Json root = {{"version", kVersion},
               {"recordedAt", k8s::format_time(record.recorded_at)},
               {"profiles", std::move(profiles)},
               {"preexistingDrift", record.preexisting_drift},
               {"unproven", record.unproven},
               {"verified", Json::object()}};
  if (!record.gpus.empty()) root["gpus"] = record.gpus;
  for (const auto& [key, revision] : record.verified) root["verified"][key] = revision;
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

k8s::Result<FleetRecord> parse_record(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return bad("must be a JSON object");
  const auto version = root.find("version");
  if (version == root.end() || !version->is_number_integer()) return bad("version must be a number");
  if (version->get<int>() != kVersion) {
    return bad(fmt::format("version {} was written by another release; this one reads version {}", version->get<int>(),
                           kVersion));
  }
  FleetRecord out;
  if (auto at = root.find("recordedAt"); at != root.end() && at->is_string()) {
    const auto time = k8s::parse_rfc3339(at->get_ref<const std::string&>());
    if (!time) return bad("recordedAt must be a time as in 2026-01-02T03:04:05Z");
    out.recorded_at = *time;
  }
  if (auto profiles = root.find("profiles"); profiles != root.end() && !read_profiles(*profiles, out)) {
    return bad("profiles must map configmap, key and revision to lists of node names");
  }
  if (!read_names(root, "preexistingDrift", out.preexisting_drift)) return bad("preexistingDrift must be a list of names");
  if (!read_names(root, "unproven", out.unproven)) return bad("unproven must be a list of names");
  if (auto gpus = root.find("gpus"); gpus != root.end()) {
    if (!gpus->is_object()) return bad("gpus must be an object");
    for (const auto& [node, count] : gpus->items()) {
      if (!count.is_number_integer()) return bad("gpus must map nodes to counts");
      out.gpus[node] = count.get<std::int64_t>();
    }
  }
  if (auto verified = root.find("verified"); verified != root.end()) {
    if (!verified->is_object()) return bad("verified must be an object");
    for (const auto& [key, revision] : verified->items()) {
      if (!revision.is_string()) return bad("verified must map keys to revisions");
      out.verified[key] = revision.get<std::string>();
    }
  }
  return out;
}

}  // namespace gso
