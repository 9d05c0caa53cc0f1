// Inference servers that reserve GPU memory as a fraction of the whole GPU. An MPS client can pin only 1/replicas of it
// but still reads the whole GPU's size, so a flag that was right on an unshared GPU makes the server fail at start.
// Source: docs of vLLM (--gpu-memory-utilization, 0.9 if it is not set), SGLang (--mem-fraction-static) and
// TensorRT-LLM (free_gpu_memory_fraction, 0.9); gpu-operator issue 1730.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/profile.h"

namespace gso {

// The fields of a container that these checks need.
struct ServerContainer {
  std::string name;
  std::string image;
  std::vector<std::string> command;  // As written; empty: the image's command.
  std::vector<std::string> args;
  // nullopt: the value comes from a Secret, a ConfigMap or a field, and is not in the manifest.
  std::map<std::string, std::optional<std::string>> env;
};

// The container runs such a server.
[[nodiscard]] bool reserves_memory(const ServerContainer& container);

// What is wrong with the server under that number of MPS replicas, and the value that fits; nullopt: nothing, or it is
// no such server. `where` names what shares the GPUs ("node n1", "key any of ConfigMap mps-config"). A fraction that
// the manifest does not show is an info: nothing is known to be wrong.
[[nodiscard]] std::optional<Diagnostic> memory_problem(const ServerContainer& container, std::int64_t replicas,
                                                       std::string_view where);

}  // namespace gso
