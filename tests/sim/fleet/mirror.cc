#include "tests/sim/fleet/mirror.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/recent_json.h"

namespace gso::sim {
namespace {

using nlohmann::json;

k8s::Result<std::pair<k8s::ObjectKey, JsonPtr>> parse(std::string_view text) {
  JsonPtr object = parsed_lately(text);
  if (object == nullptr || !object->contains("metadata"))
    return k8s::fail(k8s::Reason::decode, "an object in a watch is no JSON object with metadata");
  const json& meta = (*object)["metadata"];
  k8s::ObjectKey key{meta.value("namespace", ""), meta.value("name", "")};
  return std::pair{std::move(key), std::move(object)};
}

}  // namespace

k8s::Result<void> Mirror::init_apply(std::string_view text) {
  auto parsed = parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  buffer_.insert_or_assign(std::move(parsed->first), std::move(parsed->second));
  return {};
}

k8s::Result<void> Mirror::init_remove(std::string_view text) {
  auto parsed = parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  buffer_.erase(parsed->first);
  return {};
}

void Mirror::init_done() {
  auto before = std::exchange(objects_, std::exchange(buffer_, {}));
  synced_ = served_ = true;
  last_error_.clear();
  const auto now = objects_;  // A listener may cause further changes.
  for (const auto& [key, after] : now) {
    auto it = before.find(key);
    if (it == before.end())
      notify(key, nullptr, after);
    else if (*it->second != *after)
      notify(key, it->second, after);
  }
  for (const auto& [key, gone] : before)
    if (!now.contains(key)) notify(key, gone, nullptr);
}

k8s::Result<void> Mirror::apply(std::string_view text) {
  auto parsed = parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  JsonPtr before = std::exchange(objects_[parsed->first], parsed->second);
  notify(parsed->first, before, parsed->second);
  return {};
}

k8s::Result<void> Mirror::remove(std::string_view text) {
  auto parsed = parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  auto it = objects_.find(parsed->first);
  if (it == objects_.end()) return {};
  JsonPtr gone = std::move(it->second);
  objects_.erase(it);
  notify(parsed->first, gone, nullptr);
  return {};
}

void Mirror::absent() {
  init();
  init_done();
  served_ = false;
}

JsonPtr Mirror::find(const k8s::ObjectKey& key) const {
  auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

void Mirror::notify(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) {
  for (auto& listener : listeners_) listener(key, before, after);
}

}  // namespace gso::sim
