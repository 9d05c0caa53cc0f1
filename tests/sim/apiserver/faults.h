// What can go wrong between one client and the server: rules, chosen by a seeded generator, that
// in_process_transport.h consults for each exchange. The verbs follow client-go's fake source and sieve's bug classes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "k8sclient/value/time.h"

namespace gso::sim {

enum class Fault {
  // Unary requests.
  latency,  // Takes `delay` longer; a watch, its opening and each of its events.
  // Takes `delay` longer before the server does it, as with a webhook: it does nothing for a client that has given up.
  webhook,
  // The server ends the connection before it has read the request (GOAWAY). The transport sends it again if its sender
  // agrees, except what is not the same when it is done twice.
  refused,
  transport_error,  // No answer; the server never saw the request.
  server_error,     // `status` (5xx) before anything was committed.
  bad_gateway,      // A load balancer answers `status` with a page of its own; the server never saw the request.
  ambiguous,        // Committed, but the answer is lost: a transport error.
  conflict,         // 409 as from a lost race; nothing is committed.
  throttle,         // 429 with Retry-After `retry_after`.
  forbidden,        // 403.
  gone,             // 410 Expired (lists; on a watch the ERROR event).
  // Reads see the state of `revisions` ago; a WatchList begins with it, and the events since come before its bookmark.
  stale,
  truncated,  // The body of the answer breaks off in its middle.
  // Watches.
  drop_event,   // An event is lost, the watch goes on.
  reset_watch,  // The stream breaks after an event.
  // Both.
  hang,  // No answer until the client's timeout; the server never saw the request.
};

// One rule. It applies to matching exchanges, after the first `skip` of them, `times` times at most.
struct FaultRule {
  Fault fault = Fault::server_error;
  std::string verb = {};      // get, list, watch, create, update, patch, delete; "write" is every write; empty: any.
  std::string resource = {};  // "nodes"; empty: any.
  std::string name = {};      // Of the object; empty: any.
  std::string spared = {};    // Not for this resource.
  double probability = 1.0;
  int skip = 0;
  int times = 1'000'000'000;
  k8s::Duration delay = std::chrono::seconds(1);
  int retry_after = 1;  // Seconds.
  int status = 503;
  std::uint64_t revisions = 10;
};

class Faults {
 public:
  explicit Faults(std::uint64_t seed = 1) : random_(seed) {}

  void add(FaultRule rule) { rules_.push_back({std::move(rule), 0, 0}); }
  void clear() { rules_.clear(); }
  // How often rules of this kind applied.
  [[nodiscard]] std::uint64_t count(Fault fault) const;

  // The rule of that kind that applies to this exchange, if any; asking is applying.
  std::optional<FaultRule> pick(Fault fault, const std::string& verb, const std::string& resource,
                                const std::string& name);

  // Called with the number of the write (from 1) after the server committed it and before the client hears of it:
  // true kills the answer, as a crash of the client there would. The crash itself is the test's business.
  std::function<bool(std::uint64_t write)> crash_point;
  std::uint64_t writes = 0;

 private:
  struct State {
    FaultRule rule;
    int seen = 0;
    int applied = 0;
  };
  std::mt19937_64 random_;
  std::vector<State> rules_;
};

}  // namespace gso::sim
