#include "reconcilers/checks/catalogue.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "reconcilers/checks/check.h"

namespace gso {
namespace {

using Kind = CodeSection::Kind;

// A row without a meaning names a check of the chain. Checks without a row are a section of their own.
std::vector<CodeSection> complete() {
  std::vector<CodeSection> out{codes_of_blocked_nodes()};
  std::ranges::move(codes_reported(), std::back_inserter(out));
  std::ranges::move(codes_checked(), std::back_inserter(out));
  const auto row_of = [](const Check& check) {
    return CodeRow{{check.code}, check.severity, check.meaning, check.remedy};
  };
  const auto chain = std::ranges::find_if(out, [](const CodeSection& section) { return section.rows.empty(); });
  std::set<std::string_view> listed;
  for (CodeSection& section : out) {
    for (CodeRow& row : section.rows) {
      if (row.meaning.empty()) row = row_of(*find_check(row.codes.front()));
      if (section.kind != Kind::reported) listed.insert(row.names().begin(), row.names().end());
      if (section.kind == Kind::reported && row.seen.empty()) row.seen = "finding";
    }
  }
  for (const Check& check : checks())
    if (!listed.contains(check.code)) chain->rows.push_back(row_of(check));
  return out;
}

const CodeRow* find_row(std::string_view code, Kind kind) {
  for (const CodeSection& section : code_catalogue()) {
    if (section.kind != kind) continue;
    for (const CodeRow& row : section.rows)
      if (std::ranges::find(row.names(), code) != row.names().end()) return &row;
  }
  return nullptr;
}

}  // namespace

const std::vector<CodeSection>& code_catalogue() {
  static const std::vector<CodeSection> kCatalogue = complete();
  return kCatalogue;
}

const CodeRow* find_code(std::string_view code) {
  const CodeRow* checked = find_row(code, Kind::checked);
  return checked != nullptr ? checked : find_blocked_reason(code);
}

const CodeRow* find_blocked_reason(std::string_view reason) {
  return find_row(reason, Kind::blocks);
}

std::string_view meaning_of(std::string_view code) {
  const CodeRow* row = find_code(code);
  return row == nullptr ? std::string_view() : row->meaning;
}

std::string_view remedy_of(std::string_view code) {
  const CodeRow* row = find_code(code);
  return row == nullptr ? std::string_view() : row->remedy;
}

}  // namespace gso
