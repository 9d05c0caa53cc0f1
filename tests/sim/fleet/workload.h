// GPU consumers.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gso::sim {

struct ConsumerPod {
  std::string node = {};  // Bound directly; empty: for a scheduler to bind.
  std::string name;
  std::string ns = "default";
  std::string resource = "nvidia.com/gpu";
  std::int64_t count = 1;
  std::map<std::string, std::string> labels = {};
};
// One pod that runs until it is deleted.
[[nodiscard]] nlohmann::json consumer_pod(const ConsumerPod& pod);

}  // namespace gso::sim
