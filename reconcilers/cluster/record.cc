// FleetRecord <-> JSON.
#include "reconcilers/cluster/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

bool read_outcome(const Json& entry, std::string_view list, FleetRecord& out) {
  FleetRecord::Failure read;
  std::string* const texts[] = {&read.policy, &read.set, &read.key, &read.revision, &read.retry};
  constexpr const char* kFields[] = {"policy", "set", "key", "revision", "retry"};
  for (std::size_t i = 0; i < std::size(texts); ++i) {
    auto it = entry.find(kFields[i]);
    if (it == entry.end() && texts[i] == &read.retry) continue;
    if (it == entry.end() || !it->is_string()) return false;
    *texts[i] = it->get<std::string>();
  }
  if (list == "good") {
    auto before = entry.find("before");
    out.good[{read.policy, read.set}] = {
        read.key, read.revision, before != entry.end() && before->is_string() ? before->get<std::string>() : ""};
    return true;
  }
  if (!read_names(entry, "nodes", read.nodes)) return false;
  if (auto it = entry.find("rolledBack"); it != entry.end() && it->is_boolean()) read.rolled_back = it->get<bool>();
  out.failures.push_back(std::move(read));
  return true;
}
}  // namespace

std::string print_record(const FleetRecord& record) {
  Json profiles = Json::object();
  std::map<std::string_view, const FleetRecord::Entry*> sorted;
  for (const auto& [node, entry] : record.nodes) sorted.emplace(node, &entry);
  for (const auto& [node, entry] : sorted)
    profiles[std::string(entry->set.view())][std::string(entry->key.view())][std::string(entry->revision.view())]
        .push_back(node);
  Json root = {{"version", kVersion},
               {"recordedAt", k8s::format_time(record.recorded_at)},
               {"profiles", std::move(profiles)},
               {"preexistingDrift", record.preexisting_drift},
               {"unproven", record.unproven},
               {"verified", Json::object()}};
  if (!record.gpus.empty()) root["gpus"] = record.gpus;
  for (const auto& [key, revision] : record.verified) root["verified"][key] = revision;
  if (!record.previous.empty()) root["previous"] = record.previous;
  if (!record.texts.empty()) root["texts"] = record.texts;
  for (const FleetRecord::Failure& failure : record.failures) {
    root["failures"].push_back({{"policy", failure.policy},
                                {"set", failure.set},
                                {"key", failure.key},
                                {"revision", failure.revision},
                                {"retry", failure.retry},
                                {"nodes", failure.nodes},
                                {"rolledBack", failure.rolled_back}});
  }
  for (const auto& [where, good] : record.good) {
    root["good"].push_back(
        {{"policy", where.first}, {"set", where.second}, {"key", good.key}, {"revision", good.revision}});
    if (!good.before.empty()) root["good"].back()["before"] = good.before;
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const FleetRecord::Failure* FleetRecord::failure(std::string_view policy, std::string_view set, std::string_view key,
                                                 std::string_view revision, std::string_view retry) const {
  const auto it = std::ranges::find_if(failures, [&](const Failure& f) {
    return f.policy == policy && f.set == set && f.key == key && f.revision == revision && f.retry == retry;
  });
  return it == failures.end() ? nullptr : &*it;
}

void FleetRecord::forget(const std::string& node) {
  if (nodes.erase(node) == 0) return;
  gpus.erase(node);
  preexisting_drift.erase(node);
  unproven.erase(node);
}

void FleetRecord::note_verified(const std::string& id, const std::string& to, std::string_view text) {
  auto [at, added] = verified.try_emplace(id, to);
  if (!added && at->second != to) {
    previous[id] = at->second;
    at->second = to;
  }
  std::set<std::string_view> named;
  for (const auto* revisions : {&verified, &previous}) {
    for (const auto& [key, revision] : *revisions) named.insert(revision);
  }
  std::erase_if(texts, [&](const auto& entry) { return !named.contains(entry.first); });
  std::size_t size = text.size();
  for (const auto& [revision, kept] : texts) size += kept.size();
  if (!text.empty() && text.size() <= kMaxText && size <= kMaxTexts) texts.try_emplace(to, text);
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
  if (!read_names(root, "preexistingDrift", out.preexisting_drift))
    return bad("preexistingDrift must be a list of names");
  if (!read_names(root, "unproven", out.unproven)) return bad("unproven must be a list of names");
  if (auto gpus = root.find("gpus"); gpus != root.end()) {
    if (!gpus->is_object()) return bad("gpus must be an object");
    for (const auto& [node, count] : gpus->items()) {
      if (!count.is_number_integer()) return bad("gpus must map nodes to counts");
      out.gpus[node] = count.get<std::int64_t>();
    }
  }
  const std::pair<const char*, std::map<std::string, std::string>*> maps[] = {
      {"verified", &out.verified}, {"previous", &out.previous}, {"texts", &out.texts}};
  for (const auto& [name, into] : maps) {
    auto field = root.find(name);
    if (field == root.end()) continue;
    if (!field->is_object()) return bad(fmt::format("{} must be an object", name));
    for (const auto& [key, value] : field->items()) {
      if (!value.is_string()) return bad(fmt::format("{} must map texts to texts", name));
      (*into)[key] = value.get<std::string>();
    }
  }
  for (const char* list : {"failures", "good"}) {
    auto entries = root.find(list);
    if (entries == root.end()) continue;
    if (!entries->is_array()) return bad(fmt::format("{} must be a list", list));
    for (const Json& entry : *entries) {
      if (!read_outcome(entry, list, out))
        return bad(fmt::format("each of {} must have texts policy, set, key and revision", list));
    }
  }
  return out;
}

}  // namespace gso
