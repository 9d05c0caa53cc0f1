// See sarif.h.
#include "controller/commands/shared/sarif.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "controller/config/version.h"
#include "reconcilers/checks/catalogue.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/printable_json.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// A note is what SARIF calls an info.
std::string_view level_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

// "OperatorNotRunning" as "Operator not running": of a code that the catalogue does not have.
std::string words_of(std::string_view code) {
  std::string out;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const bool begins = i > 0 && is_upper(code[i]) && !is_upper(code[i - 1]);
    const bool alone = i + 1 == code.size() || is_upper(code[i + 1]);
    if (begins) out += ' ';
    out += begins && !alone ? static_cast<char>(code[i] - 'A' + 'a') : code[i];
  }
  return out;
}

OrderedJson rule_of(const std::string& code) {
  const std::string_view meaning = meaning_of(code);
  const std::string text = meaning.empty() ? words_of(code) : std::string(meaning);
  const std::string_view remedy = remedy_of(code);
  return {{"id", code},
          {"shortDescription", {{"text", text}}},
          {"fullDescription", {{"text", text}}},
          {"help", {{"text", remedy.empty() ? text : std::string(remedy)}}}};
}

// The URI of a file: what is not allowed in a path is escaped.
std::string uri_of(std::string_view file) {
  if (file.empty()) return "cluster";
  if (file == "-") return "stdin";
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

OrderedJson location_of(const SarifResult& result) {
  OrderedJson region{{"startLine", std::max(result.line, 1)}};
  if (result.line > 0) region["startColumn"] = std::max(result.column, 1);
  OrderedJson location{
      {"physicalLocation", {{"artifactLocation", {{"uri", uri_of(result.file)}}}, {"region", std::move(region)}}}};
  OrderedJson logical = OrderedJson::array();
  for (const std::string& object : result.objects) {
    logical.push_back({{"fullyQualifiedName", object}, {"kind", "resource"}});
  }
  if (!logical.empty()) location["logicalLocations"] = std::move(logical);
  return location;
}

std::string identity_of(const SarifResult& result) {
  std::string text = result.rule;
  for (const std::string& object : result.objects) text += '\n' + object;
  return short_hash(text);
}

}  // namespace

void print_sarif(const std::vector<SarifResult>& results, std::ostream& out) {
  OrderedJson rules = OrderedJson::array();
  std::map<std::string, std::size_t> places;
  OrderedJson found = OrderedJson::array();
  for (const SarifResult& result : results) {
    const auto [at, fresh] = places.try_emplace(result.rule, rules.size());
    if (fresh) rules.push_back(rule_of(result.rule));
    OrderedJson entry{{"ruleId", result.rule},
                      {"ruleIndex", at->second},
                      {"level", level_of(result.severity)},
                      {"message", {{"text", shown_message(result.message)}}},
                      {"locations", OrderedJson::array({location_of(result)})}};
    // Results of a cluster have one place: this distinguishes those of one rule, and matches them with those of the
    // next run.
    if (result.file.empty()) entry["partialFingerprints"] = {{"primaryLocationLineHash", identity_of(result) + ":1"}};
    found.push_back(std::move(entry));
  }
  const OrderedJson driver{{"name", "gpu-sharing-operator"}, {"version", version()}, {"rules", std::move(rules)}};
  const OrderedJson run{{"tool", {{"driver", driver}}}, {"results", std::move(found)}};
  const OrderedJson document{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                             {"version", "2.1.0"},
                             {"runs", OrderedJson::array({run})}};
  out << printable_json(document.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) << "\n";
}

}  // namespace gso
