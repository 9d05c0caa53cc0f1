// Lint's answers: JSON for programs, source lines with a caret for people.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "k8sclient/value/encoding.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMark = "\xef\xbb\xbf";  // The byte order mark takes no column.

ordered_json section_json(const SharingSection& section, bool mps) {
  ordered_json out = ordered_json::object();
  if (section.rename_by_default) out["renameByDefault"] = true;
  if (mps || section.fail_requests_greater_than_one)
    out["failRequestsGreaterThanOne"] = section.fail_requests_greater_than_one.value_or(true);
  out["resources"] = ordered_json::array();
  for (const ReplicatedResource& resource : section.resources) {
    ordered_json entry = {{"name", resource.name}};
    if (section.rename_by_default) entry["rename"] = resource.name + ".shared";
    entry["devices"] = "all";
    entry["replicas"] = resource.replicas;
    out["resources"].push_back(std::move(entry));
  }
  return out;
}

// A blank for each character of the line up to the column (from 1), tabs kept. The line is shown as printable() has it.
std::string padding(std::string_view line, int column) {
  std::string out;
  for (; !line.empty() && column > 1; --column) {
    // Of a byte that is not UTF-8 one: Latin-1's e with an acute accent, 0xe9, would be the beginning of a longer
    // character.
    const std::string_view raw = line.substr(0, std::max<std::size_t>(k8s::utf8_sequence(line), 1));
    const std::string shown = printable(raw);
    out += raw == "\t" ? "\t" : std::string(shown == raw ? 1 : shown.size(), ' ');
    line.remove_prefix(raw.size());
  }
  return out;
}

constexpr std::size_t kShownColumns = 160;

struct Shown {
  std::string place = {};      // "file.yaml:7:17", or "file.yaml[key], line 3 of the value, column 5".
  std::string_view line = {};  // The source line, empty for none.
  int number = 0;
  int column = 0;
};

// `text` is that of the file, `value` that of the ConfigMap's key.
Shown shown_at(const LintedDocument& document, const Diagnostic& diagnostic, const SourceLines& text,
               const SourceLines& value) {
  const auto [line, column] = diagnostic.at;
  Shown shown{.number = line, .column = column};
  const std::string file = document.source.substr(0, document.source.rfind('#'));
  if (document.line_before) {
    shown.number += line == 0 ? 0 : *document.line_before;
    shown.line = text.line(shown.number);
    // A value that is no string, or no base64, has its place in the file.
    if (!document.key.empty() && !document.value.empty() && line != 0) {
      // A literal block is indented: the difference of the two line lengths is its indentation.
      const std::string_view inside = value.line(line);
      shown.column += static_cast<int>(shown.line.size()) - static_cast<int>(inside.size());
    }
  } else {
    shown.line = value.line(line);
  }
  const std::string where = document.key.empty() ? file : fmt::format("{}[{}]", file, shown_value(document.key));
  if (line == 0)
    shown.place = where;
  else if (document.line_before)
    shown.place = fmt::format("{}:{}:{}", file, shown.number, shown.column);
  else
    shown.place = fmt::format("{}, line {} of the value, column {}", where, shown.number, shown.column);
  if (line == 0 || shown.line.size() > kShownColumns) shown.line = {};
  return shown;
}

std::string line_of(const std::string& place, const Diagnostic& d) {
  return one_line(fmt::format("{}: {}: {}{} [{}]", place, to_string(d.severity),
                              d.path.empty() ? "" : shown_value(d.path) + ": ", shown_message(d.message), d.code));
}

}  // namespace

std::string_view SourceLines::line(int number) const {
  const auto wanted = static_cast<std::size_t>(number);
  while (starts_.size() < wanted) {
    const auto end = text_.find_first_of("\r\n", starts_.back());
    if (end == std::string_view::npos) return {};
    starts_.push_back(end + (text_.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  // A text in UTF-16 has other lines.
  if (number < 1 || text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) return {};
  std::string_view out = text_.substr(starts_[wanted - 1]);
  out = out.substr(0, out.find_first_of("\r\n"));
  return out.starts_with(kMark) ? out.substr(kMark.size()) : out;
}

ordered_json normalized_json(const Profile& profile) {
  ordered_json sharing = {{"timeSlicing", ordered_json::object()}};
  if (profile.time_slicing) sharing["timeSlicing"] = section_json(*profile.time_slicing, false);
  if (profile.mps) sharing["mps"] = section_json(*profile.mps, true);
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
                                                  {"line", d.at.line},
                                                  {"column", d.at.column},
                                                  {"message", shown_message(d.message)}});
    }
    if (document.profile) entry["normalized"] = normalized_json(*document.profile);
    out["documents"].push_back(std::move(entry));
  }
  return printable_json(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

std::string lint_line(const LintedDocument& document, const Diagnostic& diagnostic) {
  const SourceLines none("");
  return line_of(shown_at(document, diagnostic, none, none).place, diagnostic);
}

std::string lint_report(const LintedDocument& document, const SourceLines& text) {
  std::string out;
  const SourceLines value(document.value);
  for (const Diagnostic& d : document.diagnostics) {
    const Shown shown = shown_at(document, d, text, value);
    out += line_of(shown.place, d) + '\n';
    if (!shown.line.empty()) {
      // The file's own line: its tabs stay, and it has no line ends.
      out += fmt::format("{:>5} | {}\n      | {}^\n", shown.number, printable(shown.line),
                         padding(shown.line, shown.column));
    }
  }
  return out;
}

}  // namespace gso
