#include "reconcilers/model/node_write.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"

namespace gso {

Node patched(Node node, const PatchNode& patch) {
  for (const auto& [key, value] : patch.set) node.meta.labels.set(key, value);
  for (const std::string& key : patch.remove) node.meta.labels.erase(key);
  for (const auto& [key, value] : patch.set_annotations) node.meta.annotations.set(key, value);
  for (const std::string& key : patch.remove_annotations) node.meta.annotations.erase(key);
  if (patch.unschedulable) node.unschedulable = *patch.unschedulable;
  return node;
}

bool writes_change(const PatchNode& patch) {
  if (patch.set_annotations.contains(std::string(kChangeAnnotation))) return true;
  const auto daemon = patch.set_annotations.find(std::string(kMpsDaemonChangeAnnotation));
  // A replacement that is deferred has ended.
  return daemon != patch.set_annotations.end() &&
         member_at(nlohmann::json::parse(daemon->second, nullptr, false), "deferredUntil") == nullptr;
}

std::optional<Node> with_change_being_written(const World& world, const Node& stored) {
  const auto written = world.nodes_being_written.find(stored.meta.name);
  if (written == world.nodes_being_written.end() || written->second == nullptr) return std::nullopt;
  return patched(stored, *written->second);
}

}  // namespace gso
