// Ownership of fields, after apimachinery's util/managedfields and structured-merge-diff's merge.Updater.
#include "tests/sim/apiserver/managed_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "tests/sim/apiserver/field_set.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMostUpdateManagers = 10;

struct ManagedEntry {
  std::string manager;
  bool applied = false;
  std::string api_version;
  std::string subresource;
  std::string time;
  FieldSet fields = {};
  json stored = {};  // Not null: the fields as they are stored. Most writes leave most entries alone.

  FieldSet& set() {
    if (!stored.is_null()) fields = FieldSet::from_json(std::exchange(stored, json()));
    return fields;
  }
  [[nodiscard]] bool empty() const { return stored.is_null() ? fields.empty() : stored.empty(); }
  [[nodiscard]] bool has_any_of(const FieldSet& some) const {
    return stored.is_null() ? !intersect(fields, some).empty() : overlaps(stored, some);
  }
  void add(const FieldSet& more) {
    if (stored.is_null() || !covers(stored, more)) fields = unite(std::move(set()), more);
  }
  void remove(const FieldSet& some) {
    if (has_any_of(some)) fields = subtract(set(), some);
  }
  [[nodiscard]] json printed() && { return stored.is_null() ? fields.to_json() : std::move(stored); }

  // An applier is the same in all versions.
  [[nodiscard]] bool same_owner(const ManagedEntry& other) const {
    return manager == other.manager && applied == other.applied && subresource == other.subresource &&
           (applied || api_version == other.api_version);
  }
};
using Entries = std::vector<ManagedEntry>;

// What no one owns: identity and what the server sets.
const FieldSet& unowned() {
  static const FieldSet set = [] {
    FieldSet s;
    for (const char* f : {"f:apiVersion", "f:kind", "f:metadata"}) s.children[f].member = true;
    for (const char* f : {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                          "managedFields", "resourceVersion"}) {
      s.children["f:metadata"].children[std::string("f:") + f].member = true;
    }
    return s;
  }();
  return set;
}

// The members of an object that another one has not, or not so. Of managedFields none, and metadata in any case.
json members_that_differ(const json& object, const json& other) {
  static const json kNone = json::object();
  json out = json::object();
  for (const auto& [name, value] : object.items()) {
    const auto it = other.find(name);
    if (name == "metadata" && value.is_object())
      out[name] = members_that_differ(value, it == other.end() || !it->is_object() ? kNone : *it);
    else if (name != "managedFields" && (it == other.end() || *it != value))
      out[name] = value;
  }
  return out;
}

// What changed between two objects, managedFields (which describes everything else) aside. Only what differs is
// looked at in detail: most of a large object is equal.
FieldChanges changes_between(const Schema* schema, const json& before, const json& after) {
  const json small_before = members_that_differ(before, after);
  const json small_after = members_that_differ(after, before);
  return compare_fields(schema, small_before, small_after);
}

// Built-in kinds always have their structs, so a create adds their members only.
json empty_object(const Resource& resource) {
  json object = json::object();
  if (!resource.custom && resource.schema != nullptr) (void)normalize(*resource.schema, object);
  return object;
}

// Writes to a subresource own only its part, and writes to the main resource everything else.
void drop_ignored(const Resource& resource, const FieldManager& manager, FieldSet& set) {
  if (manager.subresource == "status") {
    std::erase_if(set.children,
                  [](const auto& item) { return item.first != "f:status" && item.first != "f:metadata"; });
  } else if (resource.has_status) {
    set.children.erase("f:status");
  }
}

FieldSet strip(const FieldSet& set) {
  FieldSet stripped = subtract(set, unowned());
  stripped.member = false;
  return stripped;
}

Entries read_entries(json list) {
  Entries entries;
  for (auto& item : list) {
    if (!item.is_object()) continue;
    ManagedEntry entry{item.value("manager", ""), item.value("operation", "") == "Apply", item.value("apiVersion", ""),
                       item.value("subresource", ""), item.value("time", "")};
    const auto fields = item.find("fieldsV1");
    entry.stored = fields != item.end() && fields->is_object() ? std::move(*fields) : json::object();
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The list of an object that is about to be given another one.
json taken_list(json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return json::array();
  const auto list = metadata->find("managedFields");
  return list == metadata->end() ? json::array() : std::move(*list);
}

// The oldest updaters beyond the limit share one entry.
void cap_updaters(Entries& entries) {
  std::vector<ManagedEntry*> updaters;
  for (ManagedEntry& e : entries)
    if (!e.applied) updaters.push_back(&e);
  if (updaters.size() <= kMostUpdateManagers) return;
  std::stable_sort(updaters.begin(), updaters.end(),
                   [](const ManagedEntry* a, const ManagedEntry* b) { return a->time < b->time; });
  ManagedEntry& oldest = *updaters[0];
  std::size_t excess = updaters.size() - kMostUpdateManagers;
  for (std::size_t i = 1; i < updaters.size() && excess > 0; ++i) {
    if (updaters[i]->api_version != oldest.api_version) continue;
    oldest.add(updaters[i]->set());
    oldest.time = updaters[i]->time;
    oldest.manager = "ancient-changes";
    oldest.subresource.clear();
    updaters[i]->set() = {};
    --excess;
  }
}

void write_entries(Entries entries, json& object) {
  cap_updaters(entries);
  std::erase_if(entries, [](const ManagedEntry& e) { return e.empty(); });
  std::stable_sort(entries.begin(), entries.end(), [](const ManagedEntry& a, const ManagedEntry& b) {
    if (a.applied != b.applied) return a.applied;
    if (a.time != b.time) return a.time < b.time;
    return std::tie(a.manager, a.api_version, a.subresource) < std::tie(b.manager, b.api_version, b.subresource);
  });
  json list = json::array();
  for (ManagedEntry& e : entries) {
    json item = json::object();
    item["manager"] = e.manager;
    item["operation"] = e.applied ? "Apply" : "Update";
    item["apiVersion"] = e.api_version;
    item["fieldsType"] = "FieldsV1";
    item["fieldsV1"] = std::move(e).printed();
    if (!e.time.empty()) item["time"] = e.time;
    if (!e.subresource.empty()) item["subresource"] = e.subresource;
    list.push_back(std::move(item));
  }
  if (list.empty())
    object["metadata"].erase("managedFields");
  else
    object["metadata"]["managedFields"] = std::move(list);
}

ManagedEntry* find_entry(Entries& entries, const ManagedEntry& like) {
  for (ManagedEntry& e : entries)
    if (e.same_owner(like)) return &e;
  return nullptr;
}

std::string printed(const ManagedEntry& e) {
  std::string text = json(e.manager).dump();
  if (!e.subresource.empty()) text += fmt::format(" with subresource {}", json(e.subresource).dump());
  return e.applied ? text : fmt::format("{} using {}", text, e.api_version);
}

ApiError apply_conflict(const std::vector<std::pair<const ManagedEntry*, FieldSet>>& conflicts) {
  std::map<std::string, std::vector<std::string>> by_manager;
  json causes = json::array();
  std::size_t count = 0;
  for (const auto& [entry, fields] : conflicts) {
    for (const std::string& path : fields.paths()) {
      by_manager[printed(*entry)].push_back(path);
      causes.push_back(
          {{"reason", "FieldManagerConflict"}, {"message", "conflict with " + printed(*entry)}, {"field", path}});
      ++count;
    }
  }
  std::string message;
  if (count == 1) {
    const auto& [manager, paths] = *by_manager.begin();
    message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}", manager, paths.front());
  } else {
    std::vector<std::string> lines;
    for (const auto& [manager, paths] : by_manager) {
      lines.push_back(fmt::format("conflicts with {}:", manager));
      for (const auto& path : paths) lines.push_back("- " + path);
    }
    message = fmt::format("Apply failed with {} conflicts: {}", count, fmt::join(lines, "\n"));
  }
  return {409, "Conflict", std::move(message), {{"causes", std::move(causes)}}};
}

// Others lose what was changed or removed; under apply without force, a change is a conflict first.
std::optional<ApiError> take_from_others(Entries& entries, const ManagedEntry& self, const FieldChanges& changes,
                                         bool may_take) {
  std::vector<std::pair<const ManagedEntry*, FieldSet>> conflicts;
  for (ManagedEntry& e : entries) {
    if (may_take || e.same_owner(self) || !e.has_any_of(changes.added_or_modified)) continue;
    conflicts.emplace_back(&e, intersect(e.set(), changes.added_or_modified));
  }
  if (!conflicts.empty()) return apply_conflict(conflicts);
  for (ManagedEntry& e : entries) {
    if (e.same_owner(self)) continue;
    e.remove(changes.added_or_modified);
    e.remove(changes.removed);
  }
  return std::nullopt;
}

}  // namespace

void track_update(const Resource& resource, const FieldManager& manager, const json& before, json& after) {
  // A writer may reset the list by sending [{}]; what it omits is restored by the caller.
  Entries entries = read_entries(taken_list(after));
  std::erase_if(entries, [](const ManagedEntry& e) { return e.empty(); });
  const bool creating = before.empty();
  if (entries.empty() && !creating) {  // An object whose fields nobody owns stays so until somebody applies to it.
    after["metadata"].erase("managedFields");
    return;
  }
  const json empty = creating ? empty_object(resource) : json();
  const FieldChanges changes = changes_between(resource.schema, creating ? empty : before, after);
  const ManagedEntry self{manager.name, false, resource.api_version(), manager.subresource,
                          k8s::format_time(manager.now)};
  (void)take_from_others(entries, self, changes, true);
  FieldSet taken = strip(changes.added_or_modified);
  drop_ignored(resource, manager, taken);
  ManagedEntry* mine = find_entry(entries, self);
  if (mine != nullptr) mine->remove(changes.removed);
  if (!taken.empty()) {
    if (mine == nullptr) {
      entries.push_back(self);
      mine = &entries.back();
    }
    mine->add(taken);
    mine->time = self.time;
  }
  write_entries(std::move(entries), after);
}

Outcome<json> apply_configuration(const Resource& resource, const FieldManager& manager, bool force, const json& live,
                                  const json& config) {
  json base = live;
  Entries entries = read_entries(taken_list(base));
  if (base.contains("metadata")) base["metadata"].erase("managedFields");
  if (entries.empty() && !live.empty()) {  // Nobody owned anything so far: that was somebody's all the same.
    const FieldChanges all = compare_fields(resource.schema, empty_object(resource), base);
    entries.push_back({"before-first-apply", false, resource.api_version(), "", k8s::format_time(manager.now),
                       strip(all.added_or_modified)});
    std::erase_if(entries, [](const ManagedEntry& e) { return e.empty(); });
  }
  json merged = merge_fields(resource.schema, base, config);
  ManagedEntry self{manager.name, true, resource.api_version(), manager.subresource, k8s::format_time(manager.now)};
  FieldSet owned = strip(leaves(resource.schema, config));
  drop_ignored(resource, manager, owned);
  ManagedEntry* previous = find_entry(entries, self);
  const std::string previous_time = previous == nullptr ? "" : previous->time;
  if (previous != nullptr) {
    FieldSet others = owned;
    for (ManagedEntry& e : entries)
      if (!e.same_owner(self)) others = unite(std::move(others), e.set());
    remove_fields(resource.schema, merged, subtract_covered(previous->set(), others));
  }
  const FieldChanges changes = compare_fields(resource.schema, base, merged);
  if (auto conflict = take_from_others(entries, self, changes, force)) return std::unexpected(std::move(*conflict));
  std::erase_if(entries, [&](const ManagedEntry& e) { return e.same_owner(self); });
  if (changes.added_or_modified.empty() && changes.removed.empty()) self.time = previous_time;
  self.fields = std::move(owned);
  entries.push_back(std::move(self));
  write_entries(std::move(entries), merged);
  return merged;
}

}  // namespace gso::sim
