// Request sequences as data: read from sequences/*.yaml, checked for typing mistakes, nothing interpreted yet.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"

namespace gso::conformance {

// One step. Texts may hold {variables}: {ns}, {i} of a repeated step, what an earlier step captured, and {c*N} for N
// times the character c.
struct Step {
  enum class Kind { request, watch, events, forget_history };
  Kind kind = Kind::request;
  k8s::Method method = k8s::Method::get;
  std::string target;  // Path and query; for `events` the name of the watch.

  // What is sent.
  std::optional<nlohmann::json> body;
  std::optional<std::string> raw;  // A body as it is, in place of `body`.
  std::string content_type;
  std::string accept = "application/json";
  bool add_field_manager = true;
  int repeat = 1;
  bool eventually = false;  // Repeated until it answers as expected, for at most half a minute.

  // Watches.
  std::string as;                  // The name that `events` uses.
  std::size_t count = 0;           // Events to read, bookmarks not counted and not kept…
  std::string until;               // …or all up to one of this type ("BOOKMARK"), or to the "end".
  std::vector<std::string> types;  // What they must be.

  // What both servers must answer.
  std::vector<int> status;
  std::string reason;
  std::vector<std::pair<std::string, nlohmann::json>> expect;  // Path -> value; null means absent.
  std::vector<std::pair<std::string, std::string>> capture;    // Variable -> path.

  // What is compared: these paths of the body only (nothing when empty), or all but these ("*": nothing of the answer).
  std::optional<std::vector<std::string>> only;
  std::vector<std::string> ignore;

  [[nodiscard]] std::string title() const;  // "PATCH /api/v1/…"
};

struct Sequence {
  std::string file;  // "watches"
  std::string name;
  std::vector<Step> steps;
  [[nodiscard]] bool forgets_history() const;
};

// All sequences of the *.yaml files in a folder, in the order of their names. `root` is where `file:` bodies lie.
// Errors name file, sequence and step.
[[nodiscard]] k8s::Result<std::vector<Sequence>> load_sequences(const std::string& folder, const std::string& root);

}  // namespace gso::conformance
