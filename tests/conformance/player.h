// Plays one sequence on one server, in a namespace of its own, and keeps what the server answered.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/conformance/sequence.h"
#include "tests/conformance/server.h"

namespace gso::conformance {

struct Answer {
  std::string title;      // "step 3, GET /api/v1/…"
  nlohmann::json answer;  // {status, contentType, warnings, retryAfter, body}, normalised; {events} for EVENTS.
};

struct Performance {
  std::vector<Answer> answers;  // Up to the step that failed.
  std::string failure;          // What was not as the sequence expects, or empty.
};

// `ns` is the namespace's name, also the value of the label `sequence` by which cluster-scoped objects are removed
// afterwards. Nothing of it may exist.
boost::asio::awaitable<Performance> play(Server* server, const Sequence* sequence, std::string ns);

}  // namespace gso::conformance
