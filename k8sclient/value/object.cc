#include "k8sclient/value/object.h"

#include <algorithm>

namespace k8s {

std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

bool older(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!number(a) || !number(b)) return false;
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

StringMap::StringMap(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}

namespace {
auto position(auto& entries, std::string_view key) {
  return std::lower_bound(entries.begin(), entries.end(), key,
                          [](const StringMap::Entry& entry, std::string_view k) { return entry.key.view() < k; });
}
}  // namespace

void StringMap::set(std::string_view key, std::string_view value) {
  // The API server writes a map's keys in order.
  const bool is_last = entries_.empty() || entries_.back().key.view() < key;
  auto it = is_last ? entries_.end() : position(entries_, key);
  if (it != entries_.end() && it->key == key) {
    it->value = Interned(value);
  } else {
    entries_.insert(it, Entry{Interned(key), Interned(value)});
  }
}

void StringMap::erase(std::string_view key) {
  auto it = position(entries_, key);
  if (it != entries_.end() && it->key == key) entries_.erase(it);
}

std::optional<std::string_view> StringMap::get(std::string_view key) const {
  auto it = position(entries_, key);
  if (it == entries_.end() || it->key != key) return std::nullopt;
  return it->value.view();
}

const OwnerReference* ObjectMeta::controller() const {
  auto it = std::find_if(owners.begin(), owners.end(), [](const OwnerReference& owner) { return owner.controller; });
  return it == owners.end() ? nullptr : &*it;
}

}  // namespace k8s
