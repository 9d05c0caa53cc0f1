#include "tests/sim/fleet/workload.h"

#include <nlohmann/json.hpp>

namespace gso::sim {

using nlohmann::json;

json consumer_pod(const ConsumerPod& pod) {
  const std::string count = std::to_string(pod.count);
  json object{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", pod.name}, {"namespace", pod.ns}, {"labels", pod.labels}}},
              {"spec",
               {{"restartPolicy", "Never"},
                {"containers",
                 json::array({{{"name", "cuda"},
                               {"image", "example/cuda-app:1"},
                               {"resources",
                                {{"limits", {{pod.resource, count}}}, {"requests", {{pod.resource, count}}}}}}})}}}};
  if (!pod.node.empty()) object["spec"]["nodeName"] = pod.node;
  if (pod.resource.starts_with("nvidia.com/gpu-")) object["spec"]["hostIPC"] = true;
  return object;
}

}  // namespace gso::sim
