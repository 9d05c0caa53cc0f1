#include "tests/sim/recent_json.h"

#include <cstddef>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr std::size_t kMost = 512;

// By hash and length: of a few hundred texts no two have both in common.
struct Entry {
  std::size_t hash = 0, length = 0;
  std::shared_ptr<const json> parsed;
};

struct Recent {
  std::list<Entry> entries;  // The one that was asked for last comes first.
  std::unordered_map<std::size_t, std::list<Entry>::iterator> by_hash;
};

Recent& recent() {
  thread_local Recent all;
  return all;
}

void keep(std::size_t hash, std::size_t length, std::shared_ptr<const json> parsed) {
  Recent& all = recent();
  if (const auto known = all.by_hash.find(hash); known != all.by_hash.end()) all.entries.erase(known->second);
  all.entries.push_front({hash, length, std::move(parsed)});
  all.by_hash[hash] = all.entries.begin();
  if (all.entries.size() <= kMost) return;
  all.by_hash.erase(all.entries.back().hash);
  all.entries.pop_back();
}

}  // namespace

std::shared_ptr<const json> parsed_lately(std::string_view text) {
  Recent& all = recent();
  const std::size_t hash = std::hash<std::string_view>{}(text);
  const auto known = all.by_hash.find(hash);
  if (known != all.by_hash.end() && known->second->length == text.size()) {
    all.entries.splice(all.entries.begin(), all.entries, known->second);
    return known->second->parsed;
  }
  json fresh = json::parse(text, nullptr, false);
  if (fresh.is_discarded()) return nullptr;
  auto parsed = std::make_shared<const json>(std::move(fresh));
  keep(hash, text.size(), parsed);
  return parsed;
}

void keep_parsed(std::string_view text, std::shared_ptr<const json> parsed) {
  keep(std::hash<std::string_view>{}(text), text.size(), std::move(parsed));
}

}  // namespace gso::sim
