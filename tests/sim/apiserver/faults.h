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
  unconfirmed,      // Committed, but a load balancer gives up first: 504 with a page of its own.
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
  // Of the process that sends and of the world around it, at the moment of an exchange: whoever plays them does them
  // (Faults::strike). The first two end the exchange; all others come with its answer.
  crash_unsent,      // The process ends before it sends the request.
  crash_unanswered,  // The process ends after the server has done it, before it hears of that.
  crash_answered,    // The process ends `delay` after the answer.
  suspend,           // Nothing of the process runs for `delay` (SIGSTOP).
  wall_step,         // Its wall clock is `delay` ahead from now on, or behind.
  cut_off,           // The process reaches no server for `delay`.
  server_away,       // Nobody reaches the server for `delay`.
  history_lost,      // The server forgets what was written in the last `delay`.
  strangers,         // A tenant's objects come, and go after `delay`.
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
  // Of a rule, by the order in which they were added: the exchanges that it matched, and those that it applied to.
  struct Use {
    int matched = 0, applied = 0;
  };
  [[nodiscard]] Use use(std::size_t rule) const { return {rules_.at(rule).seen, rules_.at(rule).applied}; }
  // How often rules of this kind applied.
  [[nodiscard]] std::uint64_t count(Fault fault) const;

  // The rule of that kind that applies to this exchange, if any; asking is applying.
  std::optional<FaultRule> pick(Fault fault, const std::string& verb, const std::string& resource,
                                const std::string& name);

  // Does what a rule of the process or of the world asks for. Called within the exchange that it applies to.
  std::function<void(const FaultRule& rule)> strike;

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
