// The kinds of settings: how each is parsed, checked and printed. options.cc builds its table of these.
//
// A setting has a name, a group (its heading in --help), one sentence, and the field of Options that it sets. A value
// that does not fit is answered with a sentence that says what would.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "controller/config/options.h"

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
