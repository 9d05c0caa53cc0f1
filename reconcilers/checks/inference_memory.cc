// See inference_memory.h.
#include "reconcilers/checks/inference_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/encoding.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

struct Server {
  std::string_view name;
  std::array<std::string_view, 3> signs;  // In the image's name; the command or module begins with one.
  std::string_view flag;                  // As in its documentation.
  std::array<std::string_view, 3> names;  // Of flags, fields and parameters, in the spelling of name_of().
  std::optional<double> by_default;
};

constexpr double kUsualFraction = 0.9;
constexpr std::size_t kMostOfValue = 64;  // Characters of a value in a message.

constexpr std::array<Server, 3> kServers{
    {{"vLLM", {"vllm", "", ""}, "--gpu-memory-utilization", {"gpu-memory-utilization", "", ""}, kUsualFraction},
     {"SGLang", {"sglang", "", ""}, "--mem-fraction-static", {"mem-fraction-static", "", ""}, std::nullopt},
     {"TensorRT-LLM",
      {"trtllm", "tensorrt-llm", "tensorrt_llm"},
      "free_gpu_memory_fraction",
      {"free-gpu-memory-fraction", "kv-cache-free-gpu-memory-fraction", "kv-cache-free-gpu-mem-fraction"},
      kUsualFraction}}};

// Flags that name a file with further settings, and parts of the names of variables that hold further flags.
constexpr std::array<std::string_view, 3> kFileFlags{"config", "extra-llm-api-options", "extra-llm-api-config"};
constexpr std::array<std::string_view, 4> kFlagVariables{"args", "opts", "options", "flags"};

bool is_name_part(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// The length of the reference at the beginning of `text`: $(NAME) of Kubernetes, $NAME or ${NAME…} of a shell. 0: none.
std::size_t reference_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '$') return 0;
  if (text[1] == '(' || text[1] == '{') {
    const std::size_t end = text.find(text[1] == '(' ? ')' : '}');
    return end == std::string_view::npos ? 0 : end + 1;
  }
  std::size_t end = 1;
  while (end < text.size() && is_name_part(text[end])) ++end;
  return end == 1 ? 0 : end;
}

// Puts known values in the place of $(NAME), as the kubelet does, also in the values themselves. What a shell would put
// there is not evaluated.
std::string expanded(std::string_view word, const ServerContainer& container, int depth = 0) {
  constexpr int kDeepest = 4;
  std::string out;
  while (!word.empty()) {
    const std::string_view piece = word.substr(0, std::max<std::size_t>(reference_length(word), 1));
    const bool of_kubelet = piece.starts_with("$(") && depth < kDeepest;
    const auto known =
        of_kubelet ? container.env.find(std::string(piece.substr(2, piece.size() - 3))) : container.env.end();
    const bool shown = known != container.env.end() && known->second;
    out += shown ? expanded(*known->second, container, depth + 1) : std::string(piece);
    word.remove_prefix(piece.size());
  }
  return out;
}

// A text with blanks is a line of a shell, or a script: without its comments, from a # that begins a word to the end of
// the line.
std::string without_comments(std::string_view text) {
  if (text.find_first_of(" \t\n") == std::string_view::npos) return std::string(text);
  std::string out;
  bool comment = false;
  for (const char c : text) {
    const bool begins_word = out.empty() || std::string_view(" \t\n;").contains(out.back());
    comment = c != '\n' && (comment || (c == '#' && begins_word));
    if (!comment) out += c;
  }
  return out;
}

// Also splits the words of a shell's line, of YAML and of Python: `sh -c "vllm serve … --gpu-memory-utilization 0.9"`
// is one argument. References stay whole.
std::vector<std::string> split(const ServerContainer& container) {
  constexpr std::string_view kSeparators = " \t\r\n=\"'\\,:;(){}[]&|<>";
  std::vector<std::string> out;
  for (const std::vector<std::string>* words : {&container.command, &container.args}) {
    for (const std::string& word : *words) {
      std::string part;
      const std::string text = expanded(without_comments(word), container);
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = std::max<std::size_t>(reference_length(std::string_view(text).substr(i)), 1);
        if (length == 1 && kSeparators.contains(text[i])) {
          if (!part.empty()) out.push_back(std::exchange(part, {}));
        } else {
          part += text.substr(i, length);
        }
        i += length;
      }
      if (!part.empty()) out.push_back(std::move(part));
    }
  }
  return out;
}

// The name of a flag, field or parameter, in one spelling: --gpu_memory_utilization is gpu-memory-utilization.
std::string name_of(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string out(word);
  std::ranges::replace(out, '_', '-');
  return out;
}

// What a server would reserve.
struct Reserved {
  const Server* server = nullptr;
  std::optional<double> fraction = std::nullopt;  // nullopt: the flag is not set, and the server chooses for itself.
  // Where the fraction comes from, for people, if it is not certain: "$(UTIL), whose content is not in the manifest",
  // "variable UTIL (0.9), if the image reads it". Empty: `fraction` is all that counts.
  std::string unknown = {};
};

std::string not_shown(std::string_view source) {
  const bool of_shell = source.starts_with('$') && !source.starts_with("$(");
  return fmt::format("{}, {}", source.substr(0, kMostOfValue),
                     of_shell ? "which only a shell evaluates" : "whose content is not in the manifest");
}

// By its flag: the last one counts.
Reserved by_flag(const Server& server, const std::vector<std::string>& words) {
  Reserved out{&server};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string name = name_of(words[i]);
    const bool is_flag =
        std::ranges::any_of(server.names, [&](std::string_view known) { return !known.empty() && name == known; });
    const std::string& value = words[i + 1];
    if (!is_flag) continue;
    if (const auto number = parse_go_float(value)) {
      // What is above 1 is no fraction: the server refuses it, so it does not fit either.
      if (*number > 0) out = {&server, *number};
    } else if (!value.starts_with("--")) {
      out = {&server, std::nullopt, not_shown(value)};
    }
  }
  return out;
}

// What else can set the flag, where no word does: a file, or a variable with flags. Empty: nothing that is seen.
std::string other_source(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_file_flag =
        words[i].starts_with("--") && std::ranges::find(kFileFlags, name_of(words[i])) != kFileFlags.end();
    if (is_file_flag && i + 1 < words.size()) return not_shown("file " + words[i + 1]);
    const std::string variable = words[i].starts_with('$') ? k8s::lower(words[i]) : std::string();
    if (std::ranges::any_of(kFlagVariables, [&](std::string_view part) { return variable.contains(part); }))
      return not_shown(words[i]);
  }
  return {};
}

// A variable that the image's entry point might turn into the flag, where nothing in the manifest refers to it. Empty:
// none.
std::string variable_for(const Server& server, const ServerContainer& container) {
  for (const auto& [name, value] : container.env) {
    const std::string flag = name_of(k8s::lower(name));
    const std::string flags = value ? name_of(k8s::lower(*value)) : std::string();
    const bool sets_it = std::ranges::any_of(server.names, [&](std::string_view known) {
      return !known.empty() && (flag.ends_with(known) || flags.contains(known));
    });
    if (!sets_it) continue;
    return value ? fmt::format("variable {} ({}), if the image reads it", name, value->substr(0, kMostOfValue))
                 : not_shown("variable " + name);
  }
  return {};
}

// "vllm", "/usr/bin/vllm", "vllm.entrypoints.openai.api_server", "trtllm-serve".
bool runs_it(const Server& server, const std::string& word) {
  const std::string name = k8s::lower(std::string_view(word).substr(word.rfind('/') + 1));
  return std::ranges::any_of(server.signs, [&](std::string_view sign) {
    const bool begins = !sign.empty() && name.starts_with(sign);
    return begins && (name.size() == sign.size() || name[sign.size()] == '.' || name[sign.size()] == '-');
  });
}

bool is_server(const Server& server, const ServerContainer& container, const std::vector<std::string>& words) {
  if (std::ranges::any_of(words, [&](const std::string& word) { return runs_it(server, word); })) return true;
  if (!container.command.empty()) return false;  // The command overrides the image's.
  const std::string image = k8s::lower(container.image);
  return std::ranges::any_of(
      server.signs, [&](std::string_view sign) { return !sign.empty() && image.find(sign) != std::string::npos; });
}

// nullopt: it runs no such server.
std::optional<Reserved> reserved_by(const ServerContainer& container) {
  const std::vector<std::string> words = split(container);
  for (const Server& server : kServers) {
    Reserved out = by_flag(server, words);
    if (out.fraction || !out.unknown.empty()) return out;
    out.unknown = variable_for(server, container);
    if (out.unknown.empty() && !is_server(server, container, words)) continue;
    if (out.unknown.empty()) out.unknown = other_source(words);
    return out;
  }
  return std::nullopt;
}

// The largest fraction, in hundredths, that fits into one client's slice beside its CUDA context: 0.22 for 4 replicas.
double fitting_fraction(std::int64_t replicas) {
  constexpr double kBesideTheContext = 0.9;
  constexpr double kHundredths = 100;
  return std::floor(kBesideTheContext * kHundredths / static_cast<double>(std::max<std::int64_t>(replicas, 1)) + 1e-9) /
         kHundredths;
}

}  // namespace

bool reserves_memory(const ServerContainer& container) {
  return reserved_by(container).has_value();
}

std::optional<Diagnostic> memory_problem(const ServerContainer& container, std::int64_t replicas,
                                         std::string_view where) {
  const auto reserved = reserved_by(container);
  if (!reserved || replicas < 2) return std::nullopt;
  const Server& server = *reserved->server;
  const double fits = fitting_fraction(replicas);
  const bool unknown = !reserved->unknown.empty();
  const std::optional<double> takes = reserved->fraction || unknown ? reserved->fraction : server.by_default;
  if (takes && *takes <= fits) return std::nullopt;
  const std::string asked = unknown              ? fmt::format("{} comes from {}", server.flag, reserved->unknown)
                            : reserved->fraction ? fmt::format("{} is {}", server.flag, *reserved->fraction)
                            : takes ? fmt::format("{} is not set, and its default is {}", server.flag, *takes)
                                    : fmt::format("{} is not set", server.flag);
  return Diagnostic{
      unknown ? Severity::info : Severity::warning,
      unknown ? "MemoryFractionUnknown" : "MemoryFractionAboveSlice",
      "",
      {},
      fmt::format("container {}: {} reserves a fraction of the whole GPU ({}), and {} shares each GPU by MPS among {} "
                  "clients, which get 1/{} of its memory each: {}set {} to at most {:.2f}",
                  container.name, server.name, asked, where, replicas, replicas,
                  unknown ? "" : "the server would run out of memory at start; ", server.flag, fits)};
}

}  // namespace gso
