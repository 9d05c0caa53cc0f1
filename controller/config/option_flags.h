// Options as the command line takes them: their kinds, and the flags.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/options.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// --- The kinds of settings: how each is parsed, checked and printed. options.cc builds its table of these. A value
// that does not fit is answered with a sentence that says what would.

// A reference to one field of an Options: `&Options::mode`, or within() for one that is further inside.
template <class T>
using OptionField = std::function<T&(Options&)>;
template <class Part, class T>
OptionField<T> within(Part PlannerSettings::* part, T Part::* field) {
  return [part, field](Options& options) -> T& { return options.*part.*field; };
}

template <class T>
const T& read(const OptionField<T>& field, const Options& options) {
  return field(const_cast<Options&>(options));  // The accessor only forms a reference.
}

// The values that a duration can have. `or_zero`: 0 as well, which switches the thing off.
struct OptionRange {
  Duration least;
  Duration most;
  bool or_zero = false;
};

template <class E>
using OptionNames = std::vector<std::pair<std::string, E>>;

// The settings under one heading of --help, which it adds to a list: by name, with one sentence each.
class OptionGroup {
 public:
  OptionGroup(std::string heading, std::vector<OptionSpec>* out) : heading_(std::move(heading)), out_(out) {}

  // `type`: what --help shows for the value.
  void text(std::string name, std::string type, std::string doc, OptionField<std::string> field);
  // Names of namespaces, separated by commas.
  void namespaces(std::string name, std::string doc, OptionField<std::set<std::string>> field);
  void boolean(std::string name, std::string doc, OptionField<bool> field);
  void duration(std::string name, std::string doc, OptionField<Duration> field, OptionRange range);
  void integer(std::string name, std::string doc, OptionField<std::int64_t> field, std::int64_t least,
               std::int64_t most);
  // A count or a percentage of nodes.
  void share(std::string name, std::string doc, OptionField<IntOrPercent> field);
  // One of several spellings.
  template <class E>
  void choice(std::string name, std::string doc, OptionNames<E> names, OptionField<E> field) {
    std::string all;
    for (const auto& [spelling, value] : names) all += (all.empty() ? "" : "|") + spelling;
    const auto set = [field, names, all](Options& o, const std::string& text) -> std::string {
      const auto named = std::ranges::find(names, text, [](const auto& entry) { return entry.first; });
      if (named == names.end()) return fmt::format("'{}' is not one of {}", text, all);
      field(o) = named->second;
      return {};
    };
    const auto get = [field, names](const Options& o) {
      const auto named = std::ranges::find(names, read(field, o), [](const auto& entry) { return entry.second; });
      return named == names.end() ? std::string() : named->first;
    };
    add(std::move(name), all, std::move(doc), set, get);
  }

 private:
  OptionSpec& add(std::string name, std::string type, std::string doc,
                  std::function<std::string(Options&, const std::string&)> set,
                  std::function<std::string(const Options&)> get);

  std::string heading_;
  std::vector<OptionSpec>* out_;
};

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
