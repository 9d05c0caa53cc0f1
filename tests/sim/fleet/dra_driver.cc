#include "tests/sim/fleet/dra_driver.h"

#include <nlohmann/json.hpp>

#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char* kDriver = "gpu.nvidia.com";

k8s::ObjectKey slice_of(const std::string& node) {
  return {"", node + "-" + kDriver};
}

}  // namespace

void DraDriver::offer(const std::string& node, std::size_t gpus) {
  json slice;
  slice["apiVersion"] = "resource.k8s.io/v1";
  slice["kind"] = "ResourceSlice";
  slice["metadata"]["name"] = slice_of(node).name;
  json& spec = slice["spec"];
  spec["driver"] = kDriver;
  spec["nodeName"] = node;
  spec["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}};
  spec["devices"] = json::array();
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) spec["devices"].push_back({{"name", "gpu-" + std::to_string(gpu)}});
  outbox_.push({.verb = Write::Verb::create, .gvr = kResourceSlices, .key = slice_of(node), .body = slice.dump()});
}

void DraDriver::withdraw(const std::string& node) {
  outbox_.push({.verb = Write::Verb::remove, .gvr = kResourceSlices, .key = slice_of(node)});
}

}  // namespace gso::sim
