// Lint's answers: JSON for programs, source lines with a caret for people.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/lint/lint.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/printable_json.h"

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

// The code point that begins at `at`; moves `at` after it. Bytes that are not UTF-8 count one each: Latin-1's e with an
// acute accent, 0xe9, would be the beginning of a longer character, and its low bits are those of a tab.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const std::size_t more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  const std::string_view rest = text.substr(at).substr(0, more);
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; };
  if (more == 0 || rest.size() < more || !std::ranges::all_of(rest, continues)) return kReplacement;
  std::uint32_t code = first & (0x3fU >> more);
  for (const char byte : rest) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  at += more;
  return code;
}

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};

bool among(std::uint32_t code, std::span<const CodePoints> ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const CodePoints& r) { return code >= r.first && code <= r.last; });
}

// Columns that a terminal gives a character: 2 for East Asian wide ones and emoji, 0 for marks that combine. Source:
// Unicode's EastAsianWidth.txt, by blocks.
int width_of(std::uint32_t code) {
  static constexpr std::array<CodePoints, 13> kWide{{{0x1100, 0x115f},
                                                     {0x2e80, 0x303e},
                                                     {0x3041, 0x33ff},
                                                     {0x3400, 0x4dbf},
                                                     {0x4e00, 0xa4cf},
                                                     {0xa960, 0xa97f},
                                                     {0xac00, 0xd7a3},
                                                     {0xf900, 0xfaff},
                                                     {0xfe30, 0xfe6f},
                                                     {0xff00, 0xff60},
                                                     {0xffe0, 0xffe6},
                                                     {0x1f300, 0x1faff},
                                                     {0x20000, 0x3fffd}}};
  static constexpr std::array<CodePoints, 6> kNone{
      {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}}};
  return among(code, kWide) ? 2 : among(code, kNone) || code == 0xfeff ? 0 : 1;
}

// Blanks as wide as the line up to the column (code points from 1), tabs kept. The line is shown as printable() has it.
std::string padding(std::string_view line, int column) {
  std::string out;
  for (std::size_t at = 0; at < line.size() && column > 1; --column) {
    const std::size_t start = at;
    const std::uint32_t code = next_code_point(line, at);
    const std::string_view raw = line.substr(start, at - start);
    const std::string shown = printable(raw);
    const std::size_t width = shown == raw ? static_cast<std::size_t>(width_of(code)) : shown.size();
    out += code == '\t' ? "\t" : std::string(width, ' ');
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

// `text` is that of the file, `value` that of the ConfigMap's key.
Shown shown_at(const LintedDocument& document, const Diagnostic& diagnostic, const SourceLines& text,
               const SourceLines& value) {
  Shown shown;
  const std::string file = document.source.substr(0, document.source.rfind('#'));
  shown.number = diagnostic.line;
  shown.column = diagnostic.column;
  if (document.placement) {
    shown.number += diagnostic.line == 0 ? 0 : document.placement->line_before;
    shown.column += diagnostic.line == 0 ? 0 : document.placement->indent;
    shown.line = text.line(shown.number);
    // A value that is no string, or no base64, has its place in the file.
    if (!document.key.empty() && !document.value.empty() && diagnostic.line != 0) {
      // A literal block is indented: the difference of the two line lengths is its indentation.
      const std::string_view inside = value.line(diagnostic.line);
      shown.column += static_cast<int>(shown.line.size()) - static_cast<int>(inside.size());
    }
  } else {
    shown.line = value.line(diagnostic.line);
  }
  const std::string where = document.key.empty() ? file : fmt::format("{}[{}]", file, shown_value(document.key));
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
                                                  {"message", shown_message(d.message)}});
    }
    if (document.profile) {
      entry["normalized"] = normalized_json(*document.profile);
    }
    out["documents"].push_back(std::move(entry));
  }
  return printable_json(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

namespace {

std::string line_of(const std::string& place, const Diagnostic& d) {
  return one_line(fmt::format("{}: {}: {}{} [{}]", place, to_string(d.severity),
                              d.path.empty() ? "" : shown_value(d.path) + ": ", shown_message(d.message), d.code));
}

}  // namespace

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

std::string lint_report(const LintedDocument& document, std::string_view text) {
  return lint_report(document, SourceLines(text));
}

}  // namespace gso
