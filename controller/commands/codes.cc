// See codes.h.
#include "controller/commands/codes.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "reconcilers/checks/catalogue.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson document() {
  OrderedJson sections = OrderedJson::array();
  for (const CodeSection& section : code_catalogue()) {
    OrderedJson codes = OrderedJson::array();
    for (const CodeEntry& entry : section.entries) {
      codes.push_back({{"codes", entry.codes},
                       {"severity", to_string(entry.severity)},
                       {"meaning", entry.meaning},
                       {"remedy", entry.remedy}});
    }
    sections.push_back({{"title", section.title}, {"intro", section.intro}, {"codes", std::move(codes)}});
  }
  OrderedJson reasons = OrderedJson::array();
  for (const BlockedReason& reason : blocked_reasons()) {
    reasons.push_back({{"reason", reason.reason}, {"meaning", reason.meaning}, {"remedy", reason.remedy}});
  }
  return {{"sections", std::move(sections)}, {"blockedReasons", std::move(reasons)}};
}

void print_code(std::string_view code, std::string_view what, std::string_view meaning, std::string_view remedy,
                std::ostream& out) {
  out << "  " << code << " (" << what << "): " << meaning << ". To do: " << remedy << "\n";
}

}  // namespace

void print_codes(bool json, std::ostream& out) {
  if (json) {
    out << document().dump(2) << "\n";
    return;
  }
  for (const CodeSection& section : code_catalogue()) {
    out << section.title << "\n";
    for (const CodeEntry& entry : section.entries) {
      for (const std::string_view code : entry.codes) {
        print_code(code, to_string(entry.severity), entry.meaning, entry.remedy, out);
      }
    }
  }
  out << "Why a node is Blocked\n";
  for (const BlockedReason& reason : blocked_reasons()) {
    print_code(reason.reason, "reason", reason.meaning, reason.remedy, out);
  }
}

}  // namespace gso
