#include "reconcilers/checks/catalogue.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"

namespace gso {
namespace {

using Kind = CodeSection::Kind;

CodeSection chain_section() {
  return {"The setup of a node",
          "Reported about the Node (once about the DaemonSet if many nodes are affected) by `lint` of manifests, by "
          "`plan`, and by the operator before it changes the node. If a code blocks a node, `explain` also shows the "
          "reason of the block.",
          {}};
}

// The rows of the checks of objects are the first of their section; a check that the chain lists for nodes is there.
void add_object_checks(CodeSection& section) {
  std::vector<CodeRow> rows;
  for (const ObjectCheck& check : object_checks()) {
    const Check* of_nodes = find_check(check.code);
    if (of_nodes != nullptr && of_nodes->listed) continue;
    if (of_nodes != nullptr) {
      rows.push_back({{check.code}, of_nodes->severity, of_nodes->meaning, of_nodes->remedy});
    } else {
      rows.push_back({{check.code}, check.severity, check.meaning, check.remedy});
    }
  }
  section.rows.insert(section.rows.begin(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

// A row without a meaning names a check of the chain.
void complete_rows(std::vector<CodeSection>& sections) {
  for (CodeSection& section : sections) {
    for (CodeRow& row : section.rows) {
      const Check* check = row.meaning.empty() ? find_check(row.codes.front()) : nullptr;
      if (check != nullptr) row = {{check->code}, check->severity, check->meaning, check->remedy};
    }
  }
}

std::vector<CodeSection> complete() {
  std::vector<CodeSection> out{codes_of_blocked_nodes()};
  std::ranges::move(codes_reported(), std::back_inserter(out));
  std::ranges::move(codes_of_profiles(), std::back_inserter(out));
  out.push_back(chain_section());
  const std::size_t chain = out.size() - 1;
  std::ranges::move(codes_of_manifests(), std::back_inserter(out));
  add_object_checks(*std::ranges::find(out, kTitleOfObjects, &CodeSection::title));
  complete_rows(out);
  std::set<std::string_view> listed;
  for (const CodeSection& section : out) {
    for (const CodeRow& row : section.rows) {
      if (section.kind != Kind::reported) listed.insert(row.names().begin(), row.names().end());
    }
  }
  for (const Check& check : checks()) {
    if (!listed.contains(check.code))
      out[chain].rows.push_back({{check.code}, check.severity, check.meaning, check.remedy});
  }
  return out;
}

const CodeRow* find_row(std::string_view code, Kind kind) {
  for (const CodeSection& section : code_catalogue()) {
    if (section.kind != kind) continue;
    for (const CodeRow& row : section.rows) {
      if (std::ranges::find(row.names(), code) != row.names().end()) return &row;
    }
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
