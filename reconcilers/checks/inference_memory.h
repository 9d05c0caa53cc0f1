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

#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/reason.h"

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

struct MemoryFraction {
  std::string_view server;           // "vLLM"
  std::string_view flag;             // "--gpu-memory-utilization"
  std::optional<double> fraction;    // nullopt: the flag is not set, and the server chooses for itself.
  std::optional<double> by_default;  // The server's default then; nullopt: unknown.
  std::string container;
  // Where the fraction comes from, for people, if it is not certain: "$(UTIL), whose content is not in the manifest",
  // "variable UTIL (0.9), if the image reads it". Empty: `fraction` is all that counts.
  std::string unknown;
};

// Empty message: no problem.
struct MemoryProblem {
  Severity severity = Severity::warning;
  std::string_view code;
  std::string message;
};

// What the container would reserve; nullopt if it is no such server.
[[nodiscard]] std::optional<MemoryFraction> memory_fraction_of(const ServerContainer& container);

// The largest fraction, in hundredths, that fits into one client's slice beside its CUDA context: 0.22 for 4 replicas.
[[nodiscard]] double fitting_fraction(std::int64_t replicas);

// The problem with that number of MPS replicas, and the value that fits, for people; `where` names what shares the GPUs
// ("node n1", "key any of ConfigMap mps-config"). A fraction that the manifest does not show is an info: nothing is
// known to be wrong.
[[nodiscard]] MemoryProblem memory_fraction_problem(const MemoryFraction& reserved, std::int64_t replicas,
                                                    std::string_view where);

inline constexpr std::string_view kMemoryFractionAboveSlice = "MemoryFractionAboveSlice";
inline constexpr std::string_view kMemoryFractionUnknown = "MemoryFractionUnknown";

}  // namespace gso
