// See inference_memory.h.
#include "reconcilers/checks/inference_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/profile/yaml_scalar.h"

namespace gso {
namespace {

struct Server {
  std::string_view name;
  std::array<std::string_view, 3> signs;  // In the image's name; the command or module begins with one.
  std::string_view flag;                  // As in its documentation.
  std::array<std::string_view, 3> spellings;
  std::optional<double> by_default;
};

constexpr double kUsualFraction = 0.9;

constexpr std::array<Server, 3> kServers{
    {{"vLLM",
      {"vllm", "", ""},
      "--gpu-memory-utilization",
      {"--gpu-memory-utilization", "--gpu_memory_utilization", ""},
      kUsualFraction},
     {"SGLang",
      {"sglang", "", ""},
      "--mem-fraction-static",
      {"--mem-fraction-static", "--mem_fraction_static", ""},
      std::nullopt},
     {"TensorRT-LLM",
      {"trtllm", "tensorrt-llm", "tensorrt_llm"},
      "free_gpu_memory_fraction",
      {"--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction", "kv_cache_free_gpu_mem_fraction"},
      kUsualFraction}}};

// Also splits the words of a shell's line: `sh -c "vllm serve … --gpu-memory-utilization 0.9"` is one argument.
std::vector<std::string> split(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    std::string part;
    const auto end = [&] {
      if (!part.empty()) out.push_back(std::exchange(part, {}));
    };
    for (const char c : word) {
      const bool separates = c == ' ' || c == '\t' || c == '\n' || c == '=' || c == '"' || c == '\'' || c == '\\' ||
                             c == ',' || c == ':' || c == ';';
      if (separates) {
        end();
      } else {
        part += c;
      }
    }
    end();
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// The value of the last of the flags, because the last one counts.
std::optional<double> value_of(const Server& server, const std::vector<std::string>& words) {
  std::optional<double> out;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool is_flag = std::ranges::any_of(
        server.spellings, [&](std::string_view spelling) { return !spelling.empty() && words[i] == spelling; });
    if (!is_flag) continue;
    if (const auto value = parse_go_float(words[i + 1]); value && *value > 0 && *value <= 1) out = *value;
  }
  return out;
}

// "vllm", "/usr/bin/vllm", "vllm.entrypoints.openai.api_server", "trtllm-serve".
bool runs_it(const Server& server, const std::string& word) {
  const std::string name = lower(std::string_view(word).substr(word.rfind('/') + 1));
  return std::ranges::any_of(server.signs, [&](std::string_view sign) {
    const bool begins = !sign.empty() && name.starts_with(sign);
    return begins && (name.size() == sign.size() || name[sign.size()] == '.' || name[sign.size()] == '-');
  });
}

bool is_server(const Server& server, const ServerContainer& container, const std::vector<std::string>& words) {
  if (std::ranges::any_of(words, [&](const std::string& word) { return runs_it(server, word); })) return true;
  if (!container.command.empty()) return false;  // The command overrides the image's.
  const std::string image = lower(container.image);
  return std::ranges::any_of(
      server.signs, [&](std::string_view sign) { return !sign.empty() && image.find(sign) != std::string::npos; });
}

}  // namespace

std::optional<MemoryFraction> memory_fraction_of(const ServerContainer& container) {
  std::vector<std::string> words = split(container.command);
  for (std::string& word : split(container.args)) words.push_back(std::move(word));
  for (const Server& server : kServers) {
    const std::optional<double> value = value_of(server, words);
    if (!value && !is_server(server, container, words)) continue;
    return MemoryFraction{server.name, server.flag, value, server.by_default, container.name};
  }
  return std::nullopt;
}

double fitting_fraction(std::int64_t replicas) {
  constexpr double kBesideTheContext = 0.9;
  constexpr double kHundredths = 100;
  return std::floor(kBesideTheContext * kHundredths / static_cast<double>(std::max<std::int64_t>(replicas, 1)) + 1e-9) /
         kHundredths;
}

std::string memory_fraction_problem(const MemoryFraction& reserved, std::int64_t replicas, std::string_view where) {
  const double fits = fitting_fraction(replicas);
  const std::optional<double> takes = reserved.fraction ? reserved.fraction : reserved.by_default;
  if (replicas < 2 || (takes && *takes <= fits)) return {};
  const std::string asked = reserved.fraction ? fmt::format("{} is {}", reserved.flag, *reserved.fraction)
                            : takes ? fmt::format("{} is not set, and its default is {}", reserved.flag, *takes)
                                    : fmt::format("{} is not set", reserved.flag);
  return fmt::format(
      "container {}: {} reserves a fraction of the whole GPU ({}), and {} shares each GPU by MPS among {} clients, "
      "which get 1/{} of its memory each: the server would run out of memory at start; set {} to at most {:.2f}",
      reserved.container, reserved.server, asked, where, replicas, replicas, reserved.flag, fits);
}

}  // namespace gso
