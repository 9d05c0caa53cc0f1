// Lint's answers: JSON for programs, source lines with a caret for people.
#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/lint/lint.h"

namespace gso {
namespace {

using nlohmann::ordered_json;

ordered_json section_json(const SharingSection& section, bool mps) {
  ordered_json out = ordered_json::object();
  if (section.rename_by_default) {
    out["renameByDefault"] = true;
  }
  if (mps || section.fail_requests_greater_than_one) {
    out["failRequestsGreaterThanOne"] = section.fail_requests_greater_than_one.value_or(true);
  }
  out["resources"] = ordered_json::array();
  for (const ReplicatedResource& resource : section.resources) {
    ordered_json entry = {{"name", resource.name}};
    if (section.rename_by_default) {
      entry["rename"] = resource.name + ".shared";
    }
    entry["devices"] = "all";
    entry["replicas"] = resource.replicas;
    out["resources"].push_back(std::move(entry));
  }
  return out;
}

// The given line of the text, from 1, without its end; shortened where it is very long.
std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && text.back() == '\r') {
    text.remove_suffix(1);
  }
  return text;
}

// Blanks as wide as the line up to the column (code points from 1), tabs kept.
std::string padding(std::string_view line, int column) {
  std::string out;
  int at = 1;
  for (std::size_t i = 0; i < line.size() && at < column; ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80) {
      out += line[i] == '\t' ? '\t' : ' ';
      ++at;
    }
  }
  return out;
}

constexpr std::size_t kShownColumns = 160;

struct Shown {
  std::string place;      // "file.yaml:7:17", or "file.yaml[key], line 3 of the value, column 5".
  std::string_view line;  // The source line, empty for none.
  int number = 0;
  int column = 0;
};

Shown shown_at(const LintedDocument& document, const Diagnostic& diagnostic, std::string_view text) {
  Shown shown;
  const std::string file = document.source.substr(0, document.source.rfind('#'));
  shown.number = diagnostic.line;
  shown.column = diagnostic.column;
  if (document.placement) {
    shown.number += diagnostic.line == 0 ? 0 : document.placement->line_before;
    shown.column += diagnostic.line == 0 ? 0 : document.placement->indent;
    shown.line = line_of(text, shown.number);
    if (!document.key.empty() && diagnostic.line != 0) {
      // A literal block is indented; how far shows where its line stands in the file.
      const std::string_view inside = line_of(document.value, diagnostic.line);
      shown.column += static_cast<int>(shown.line.size()) - static_cast<int>(inside.size());
    }
  } else {
    shown.line = line_of(document.value, diagnostic.line);
  }
  const std::string where = document.key.empty() ? file : fmt::format("{}[{}]", file, document.key);
  if (diagnostic.line == 0) {
    shown.place = where;
  } else if (document.placement) {
    shown.place = fmt::format("{}:{}:{}", file, shown.number, shown.column);
  } else {
    shown.place = fmt::format("{}, line {} of the value, column {}", where, shown.number, shown.column);
  }
  if (diagnostic.line == 0 || shown.line.size() > kShownColumns) {
    shown.line = {};
  }
  return shown;
}

}  // namespace

ordered_json normalized_json(const Profile& profile) {
  ordered_json sharing = {{"timeSlicing", ordered_json::object()}};
  if (profile.time_slicing) {
    sharing["timeSlicing"] = section_json(*profile.time_slicing, false);
  }
  if (profile.mps) {
    sharing["mps"] = section_json(*profile.mps, true);
  }
  return {{"sharing", std::move(sharing)}};
}

std::string lint_json(const std::vector<LintedDocument>& documents) {
  ordered_json out = {{"documents", ordered_json::array()}};
  for (const LintedDocument& document : documents) {
    ordered_json entry = {{"source", document.source}, {"kind", document.kind},
                          {"name", document.name},     {"key", document.key},
                          {"valid", document.valid()}, {"diagnostics", ordered_json::array()}};
    for (const Diagnostic& d : document.diagnostics) {
      entry["diagnostics"].push_back(ordered_json{{"severity", to_string(d.severity)},
                                                  {"code", d.code},
                                                  {"path", d.path},
                                                  {"line", d.line},
                                                  {"column", d.column},
                                                  {"message", d.message}});
    }
    if (document.profile) {
      entry["normalized"] = normalized_json(*document.profile);
    }
    out["documents"].push_back(std::move(entry));
  }
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string lint_report(const LintedDocument& document, std::string_view text) {
  std::string out;
  for (const Diagnostic& d : document.diagnostics) {
    const Shown shown = shown_at(document, d, text);
    out += fmt::format("{}: {}: {}{} [{}]\n", shown.place, to_string(d.severity), d.path.empty() ? "" : d.path + ": ",
                       d.message, d.code);
    if (!shown.line.empty()) {
      out += fmt::format("{:>5} | {}\n      | {}^\n", shown.number, shown.line, padding(shown.line, shown.column));
    }
  }
  return out;
}

}  // namespace gso
