// Options as the command line takes them: their kinds, and the flags.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/config/options.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// --- The kinds of settings: how each is parsed, checked and printed. options.cc builds its table of these. A setting
// has a name, a group (its heading in --help), one sentence, and the field of Options that it sets. A value that does
// not fit is answered with a sentence that says what would.

}  // namespace gso

namespace gso::option_kind {

// A reference to one field of an Options.
template <class T>
using Field = std::function<T&(Options&)>;

template <class T>
const T& read(const Field<T>& field, const Options& options) {
  return field(const_cast<Options&>(options));  // The accessor only forms a reference.
}

// `type`: what --help shows for the value.
[[nodiscard]] OptionSpec text(std::string name, std::string group, std::string type, std::string doc,
                              Field<std::string> field);
// Names of namespaces, separated by commas.
[[nodiscard]] OptionSpec namespaces(std::string name, std::string group, std::string doc, Field<std::string> field);
[[nodiscard]] OptionSpec boolean(std::string name, std::string group, std::string doc, Field<bool> field);

// The values that a duration can have. `or_zero`: 0 as well, which switches the thing off.
struct Range {
  Duration least;
  Duration most;
  bool or_zero = false;
};

[[nodiscard]] OptionSpec duration(std::string name, std::string group, std::string doc, Field<Duration> field,
                                  Range range);
[[nodiscard]] OptionSpec integer(std::string name, std::string group, std::string doc, Field<std::int64_t> field,
                                 std::int64_t least, std::int64_t most);
// A count or a percentage of nodes.
[[nodiscard]] OptionSpec share(std::string name, std::string group, std::string doc, Field<IntOrPercent> field);

template <class E>
using Names = std::vector<std::pair<std::string, E>>;

// One of several spellings.
template <class E>
OptionSpec choice(std::string name, std::string group, std::string doc, Names<E> names, Field<E> field) {
  std::string all;
  for (const auto& [spelling, value] : names) all += (all.empty() ? "" : "|") + spelling;
  auto set = [field, names, all](Options& o, const std::string& text) -> std::string {
    for (const auto& [spelling, value] : names) {
      if (spelling != text) continue;
      field(o) = value;
      return {};
    }
    return fmt::format("'{}' is not one of {}", text, all);
  };
  auto get = [field, names](const Options& o) {
    for (const auto& [spelling, value] : names) {
      if (value == read(field, o)) return spelling;
    }
    return std::string();
  };
  return {
      .name = std::move(name), .group = std::move(group), .type = all, .doc = std::move(doc), .set = set, .get = get};
}

// The parts of a text that are separated by commas, without empty ones.
[[nodiscard]] std::set<std::string> split_names(std::string_view text);

}  // namespace gso::option_kind

namespace gso {

// --- The operator's settings as options of a command line: flags, environment and a YAML file by the same names.

// The settings of one subcommand as CLI11 options. Values stay text until every source is known.
class OptionFlags {
 public:
  // All settings, or only those that `wanted` chooses.
  void add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted);
  void add_config_to(CLI::App* app);
  // --request-timeout: of people's commands only. The operator has deadlines of its own, so it is no setting.
  void add_request_timeout(CLI::App* app);

  // Flags and environment over the file over the defaults. Errors: `invalid`.
  [[nodiscard]] k8s::Result<Options> resolve() const;

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options_;
  CLI::Option* config_ = nullptr;
  std::string config_file_;
  std::string request_timeout_;
};

// The value of a flag into `out`, which an empty text leaves as it is. Errors (`invalid`) name the flag and `example`.
[[nodiscard]] k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                                  k8s::Duration& out);
// The same from 1s to 1h.
[[nodiscard]] k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out);

}  // namespace gso
