// Why something does not go on, or what was found: a code, and the sentence about it. Every decision that says no
// returns this type, so that statuses, findings, explain, audit and the commands show one answer, and nobody reads the
// sentence to learn what it says.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gso {

// What the sentence is about, as far as a program needs to know it: statuses have it in fields beside the message, for
// the commands, and for an operator that takes over. What is empty is left out there.
struct Facts {
  // The full budgets of nodes out of service, each by the setting that limits it: the three below.
  std::vector<std::string> budgets = {};
  std::vector<std::string> holders = {};  // The first nodes that hold the slots of the first of them.
  std::vector<std::string> nodes = {};    // The first nodes that it waits for.
  std::string until = {};                 // When the wait ends by itself, in RFC 3339.
  // Of pods that keep a node, and are not evicted:
  bool bare = false;            // some have no controller,
  std::string annotation = {};  // some have an annotation that forbids it, this the first ("gpusharing.dev/…=true"),
  bool otherwise = false;       // some would return to the node, or are of DaemonSets or static,
  bool refused = false;         // and the API server answered an eviction with no.

  [[nodiscard]] bool some_stay() const { return bare || !annotation.empty() || otherwise; }
  // Adds what another sentence beside this one is about.
  void add(const Facts& other);
  friend bool operator==(const Facts&, const Facts&) = default;
};
inline constexpr std::string_view kClusterBudget = "cluster-max-unavailable";
inline constexpr std::string_view kPolicyBudget = "maxUnavailable";
inline constexpr std::string_view kGroupBudget = "maxUnavailablePerGroup";

// Facts about these nodes, the first few of them.
[[nodiscard]] Facts about_nodes(std::vector<std::string> names);

// Sets the fields of an object of a status. Those of `entry` that are no facts stay.
void print_facts(const Facts& facts, nlohmann::json& entry);
// The same, read; fields of other types count as missing.
[[nodiscard]] Facts facts_in(const nlohmann::json& entry);
void erase_facts(nlohmann::json& entry);
// Those of status.reason, if it has that code: whoever knows no such field has written newer conditions beside it.
[[nodiscard]] Facts facts_in_status(const nlohmann::json& status, std::string_view code);

struct Reason {
  std::string code;     // CamelCase, stable: of names.h or of a check; of a container that waits, the kubelet's.
  std::string message;  // For people.
  Reason() = default;
  Reason(std::string_view why, std::string text) : code(why), message(std::move(text)) {}
  Reason(std::string_view why, std::string text, Facts about)
      : code(why), message(std::move(text)), facts_(std::make_shared<const Facts>(std::move(about))) {}
  [[nodiscard]] const Facts& facts() const;
  // Reasons are equal that say the same.
  friend bool operator==(const Reason& a, const Reason& b) { return a.code == b.code && a.message == b.message; }
  friend auto operator<=>(const Reason& a, const Reason& b) {
    return std::tie(a.code, a.message) <=> std::tie(b.code, b.message);
  }

 private:
  std::shared_ptr<const Facts> facts_;  // Null: none.
};

// --- How much a code weighs, in every output.

enum class Severity { error, warning, info };

// "error", "warning", "info".
[[nodiscard]] constexpr std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      break;
  }
  return "info";
}

}  // namespace gso
