#include "reconcilers/cluster/config_map_room.h"

namespace gso {
namespace {

constexpr std::size_t kMostBytes = 1'000'000;

}  // namespace

bool has_room(const ConfigMap& config_map, std::string_view key, std::string_view text, std::size_t more) {
  std::size_t bytes = more + key.size() + text.size();
  for (const auto& [name, content] : config_map.data) {
    if (name != key) bytes += name.size() + (content ? content->size() : 0);
  }
  return bytes <= kMostBytes;
}

}  // namespace gso
