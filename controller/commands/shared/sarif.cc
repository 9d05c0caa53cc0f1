// See sarif.h.
#include "controller/commands/shared/sarif.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "controller/config/version.h"
#include "reconcilers/checks/catalogue.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/printable_json.h"

namespace gso {
namespace {

using Json = nlohmann::ordered_json;

// A note is what SARIF calls an info.
std::string_view level_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

Json rule_of(const std::string& code) {
  Json rule{{"id", code}};
  if (const CodeEntry* entry = find_code(code)) {
    rule["shortDescription"] = {{"text", entry->meaning}};
    rule["help"] = {{"text", entry->remedy}};
  }
  return rule;
}

// The URI of a file: what is not allowed in a path is escaped.
std::string uri_of(std::string_view file) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : file) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 0xfU]};
    }
  }
  return out;
}

Json location_of(const SarifResult& result) {
  if (!result.file.empty()) {
    Json physical{{"artifactLocation", {{"uri", uri_of(result.file)}}}};
    if (result.line > 0) physical["region"] = {{"startLine", result.line}, {"startColumn", std::max(result.column, 1)}};
    return {{"physicalLocation", std::move(physical)}};
  }
  Json logical = Json::array();
  for (const std::string& object : result.objects) {
    logical.push_back({{"fullyQualifiedName", object}, {"kind", "resource"}});
  }
  return {{"logicalLocations", std::move(logical)}};
}

}  // namespace

void print_sarif(const std::vector<SarifResult>& results, std::ostream& out) {
  Json rules = Json::array();
  std::map<std::string, std::size_t> places;
  Json found = Json::array();
  for (const SarifResult& result : results) {
    const auto [at, fresh] = places.try_emplace(result.rule, rules.size());
    if (fresh) rules.push_back(rule_of(result.rule));
    found.push_back({{"ruleId", result.rule},
                     {"ruleIndex", at->second},
                     {"level", level_of(result.severity)},
                     {"message", {{"text", shown_message(result.message)}}},
                     {"locations", Json::array({location_of(result)})}});
  }
  const Json driver{{"name", "gpu-sharing-operator"}, {"version", version()}, {"rules", std::move(rules)}};
  const Json run{{"tool", {{"driver", driver}}}, {"results", std::move(found)}};
  const Json document{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
  out << printable_json(document.dump(1, ' ', false, Json::error_handler_t::replace)) << "\n";
}

}  // namespace gso
