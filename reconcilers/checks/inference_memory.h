// Inference servers that reserve GPU memory as a fraction of the whole GPU. An MPS client may pin 1/replicas of it and
// still reads the whole GPU's size, so a flag that was right on a GPU of its own makes the server fail at start.
// Source: docs of vLLM (--gpu-memory-utilization, 0.9 where it is not set), SGLang (--mem-fraction-static) and
// TensorRT-LLM (free_gpu_memory_fraction, 0.9); gpu-operator issue 1730.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// One container of a Pod, as far as this needs it.
struct ServerContainer {
  std::string name;
  std::string image;
  std::vector<std::string> command;  // As written; empty: the image's own.
  std::vector<std::string> args;
};

struct MemoryFraction {
  std::string_view server;           // "vLLM"
  std::string_view flag;             // "--gpu-memory-utilization"
  std::optional<double> fraction;    // nullopt: the flag is not set, and the server chooses for itself.
  std::optional<double> by_default;  // What it then takes; nullopt: not known.
  std::string container;
};

// What the container would reserve; nullopt where it is no such server.
[[nodiscard]] std::optional<MemoryFraction> memory_fraction_of(const ServerContainer& container);

// The most, in hundredths, that fits into one client's slice beside what its CUDA context takes: 0.22 for 4 replicas.
[[nodiscard]] double fitting_fraction(std::int64_t replicas);

// What is wrong under that many MPS replicas, and the number that fits, for people; `where` names what shares the GPUs
// ("node n1", "key any of ConfigMap mps-config"). Empty where it fits.
[[nodiscard]] std::string memory_fraction_problem(const MemoryFraction& reserved, std::int64_t replicas,
                                                  std::string_view where);

inline constexpr std::string_view kMemoryFractionAboveSlice = "MemoryFractionAboveSlice";

}  // namespace gso
