// The reservation GC of the running operator, in virtual time. Against a simulated KAI under random schedules with
// faults: no live consumer is ever lost, and what is left over is gone within the grace period plus one sweep. And with
// many orphans, or many healthy multi-device groups, over a connection with latency: it keeps its bound, and passes for
// everything else go on.
//
// GSO_KAI_SCHEDULES=10000 runs as many (default: a few), GSO_KAI_SEED=N starts at that one (to look at one again, with
// GSO_KAI_SCHEDULES=1).
#include <fmt/format.h>
#include <fmt/printf.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <memory>
#include <random>

#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/kai/kai_actor.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/story/in_process_operator.h"

namespace gso::sim::kai_race_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr const char* kUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";
constexpr auto kGrace = 60s;
constexpr auto kSweep = 10s;
constexpr auto kInterval = 10s;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

void kill_operator(SimClock& clock, asio::io_context& io, InProcessOperator& op) {
  bool ended = false;
  asio::co_spawn(io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
  clock.run_until([&ended] { return ended; }, 1min);
}

struct Tally {
  std::uint64_t deletions = 0;
  std::uint64_t binds = 0;
  std::uint64_t duplicates = 0;  // Reservations made for a group that had one.
};

// One cluster, one KAI, one operator.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : clock_(io_, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")),
        server_(io_.get_executor(), clock_),
        transport_(server_, {.user = kUser, .user_agent = "gpu-sharing-operator", .fault_seed = seed}),
        kai_(io_, clock_, server_, seed),
        op_(io_.get_executor(), &transport_, &clock_),
        random_(seed * 7919 + 1) {
    server_.add_audit_listener([this](const AuditEntry& entry) { judge(entry); });
  }
  ~Schedule() {
    kai_.stop();
    kill_operator(clock_, io_, op_);
    clock_.run_for(1min);
  }

  // Returns what went wrong, or nothing.
  std::string run(Tally& tally) {
    kai_.set_up();
    start_operator();
    kai_.start();
    const k8s::MonoTime busy_until = clock_.monotonic() + 6min;
    while (clock_.monotonic() < busy_until && trouble_.empty()) {
      trouble_now_and_then();
      clock_.run_for(std::chrono::seconds(5 + random_() % 40));
    }
    // An event that was lost without a trace (which no real server does) keeps an orphan until the next list: it never
    // costs a live consumer, and a restart brings that list.
    const bool lost_events = transport_.faults().count(Fault::drop_event) > 0;
    transport_.faults().clear();
    if (lost_events || lost_) {
      kill_operator(clock_, io_, op_);
      start_operator();
    }
    clock_.run_until([this] { return kai_.quiet(); }, 5min);
    clock_.run_for(2min);  // Watches come back, the binder's Available condition grows older than the grace.
    const std::string late = wait_for_orphans();
    tally.binds += kai_.binds_done();
    tally.deletions += deletions_;
    tally.duplicates += kai_.duplicates_made();
    if (!trouble_.empty()) return trouble_;
    if (!kai_.killed().empty()) return "KAI deleted the live consumer " + kai_.killed().front();
    if (!op_.trouble().empty()) return op_.trouble();
    return late;
  }
  [[nodiscard]] std::string log() const { return op_.recent_log(); }

 private:
  void start_operator() {
    const OperatorSettings settings{{"leader-elect", "false"},
                                    {"kai-grace", "1m"},
                                    {"kai-recheck-interval", "10s"},
                                    {"kai-node-interval", "10s"},
                                    {"page-size", std::to_string(1 + random_() % 10)},
                                    {"log-level", std::getenv("GSO_KAI_SEED") != nullptr ? "debug" : "info"}};
    const auto started = op_.start(settings);
    if (!started) trouble_ = started.error().message;
  }
  // Faults of the operator's connection, and crashes of the operator.
  void trouble_now_and_then() {
    constexpr Fault kFaults[] = {Fault::latency,    Fault::transport_error, Fault::server_error, Fault::ambiguous,
                                 Fault::conflict,   Fault::throttle,        Fault::gone,         Fault::truncated,
                                 Fault::drop_event, Fault::reset_watch,     Fault::hang};
    lost_ = lost_ || transport_.faults().count(Fault::drop_event) > 0;
    if (random_() % 4 == 0) transport_.faults().clear();
    if (random_() % 2 == 0) {
      FaultRule rule;
      rule.fault = kFaults[random_() % std::size(kFaults)];
      rule.probability = 0.05 + 0.4 * static_cast<double>(random_() % 100) / 100;
      rule.delay = std::chrono::milliseconds(1 + random_() % 4000);
      constexpr const char* kResources[] = {"", "pods", "bindrequests", "configs", "deployments"};
      rule.resource = kResources[random_() % std::size(kResources)];
      transport_.faults().add(rule);
    }
    if (random_() % 12 == 0) transport_.reset_streams();
    if (random_() % 25 == 0) {
      kill_operator(clock_, io_, op_);
      start_operator();
    }
  }

  void judge(const AuditEntry& entry) {
    if (entry.user != kUser || entry.gvr.resource != "pods" || entry.status >= 300 || !trouble_.empty()) return;
    const std::string name = k8s::to_string(entry.key);
    if (entry.verb != "delete" || entry.key.ns != kReservations || entry.before == nullptr) {
      trouble_ = fmt::format("the operator did {} {}", entry.verb, name);
      return;
    }
    ++deletions_;
    const std::string why = kai_.needed(*entry.before);
    if (!why.empty())
      trouble_ = fmt::format("the operator deleted {} at {}: {}", name, k8s::format_time(clock_.now()), why);
  }

  // What is left over now must be gone in time: one by one on each node.
  std::string wait_for_orphans() {
    const auto left = kai_.orphans();
    std::map<std::string, std::size_t> on_node;
    for (const auto& [name, node] : left) ++on_node[node];
    std::size_t most = 1;
    for (const auto& [node, count] : on_node) most = std::max(most, count);
    clock_.run_for(kGrace + kSweep + kInterval * static_cast<int>(most - 1) + 5s);
    const auto now = kai_.orphans();
    for (const auto& [name, node] : left)
      if (now.contains(name))
        return fmt::format("{} on {} is an orphan and still there ({} of {})", name, node, most, left.size());
    return {};
  }

  asio::io_context io_{1};
  SimClock clock_;
  ApiServer server_;
  InProcessTransport transport_;
  KaiActor kai_;
  InProcessOperator op_;
  std::mt19937_64 random_;
  std::uint64_t deletions_ = 0;
  bool lost_ = false;
  std::string trouble_;
};

TEST(KaiRace, NeverLosesALiveConsumerAndCollectsEveryOrphan) {
  const std::uint64_t first = from_environment("GSO_KAI_SEED", 1);
  const std::uint64_t count = from_environment("GSO_KAI_SCHEDULES", 12);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Schedule schedule(seed);
    const std::string wrong = schedule.run(tally);
    ASSERT_EQ(wrong, "") << "schedule " << seed << "\n" << schedule.log();
  }
  // Otherwise nothing has been tried.
  EXPECT_GT(tally.binds, count);
  EXPECT_GT(tally.deletions, count / 2);
  EXPECT_GT(tally.duplicates, count / 2);
}

class Mass : public ::testing::Test {
 protected:
  Mass() {
    server.add_audit_listener([this](const AuditEntry& entry) {
      if (entry.user == kUser && entry.verb == "delete" && entry.status < 300) ++deleted;
    });
    std::vector<std::string> names;
    for (int n = 0; n < nodes; ++n) names.push_back(fmt::format("n{}", n));
    install_kai(server, clock, names, clock.now() - 1h);
  }
  ~Mass() override {
    kill_operator(clock, io, op);
    clock.run_for(1min);
  }
  void post(const std::string& path, const Json& body) {
    ASSERT_LT(send_as_kai(server, k8s::Method::post, path, body), 300) << path;
  }
  void patch(const std::string& path, const Json& body) {
    ASSERT_LT(send_as_kai(server, k8s::Method::patch, path, body, "application/merge-patch+json"), 300) << path;
  }
  void reservation(int i) {
    Json pod = kai_reservation(fmt::format("r-{:05}", i), fmt::format("g-{:05}", i), fmt::format("n{}", i % nodes));
    pod["metadata"]["annotations"] = {{"run.ai/reserve_for_gpu_index", fmt::format("GPU-{}", i)}};
    const std::string pods = fmt::format("/api/v1/namespaces/{}/pods", kReservations);
    post(pods, pod);
    patch(fmt::format("{}/r-{:05}/status", pods, i), {{"status", {{"phase", "Running"}}}});
  }
  // Of the group's reservation; a BindRequest beside it where KAI still has one.
  void multi_device_consumer(int i, bool requested) {
    const std::string name = fmt::format("c-{:05}", i);
    const std::string group = fmt::format("g-{:05}", i);
    const std::string node = fmt::format("n{}", i % nodes);
    Json pod = kai_fraction_pod(name, 2, "kai-scheduler");
    pod["metadata"]["labels"] = {{"runai-gpu-group/" + group, group}};
    pod["spec"]["nodeName"] = node;
    const std::string pods = fmt::format("/api/v1/namespaces/{}/pods", kTeam);
    post(pods, pod);
    patch(fmt::format("{}/{}/status", pods, name), {{"status", {{"phase", "Running"}}}});
    if (!requested) return;
    const std::string requests = fmt::format("/apis/scheduling.run.ai/v1alpha2/namespaces/{}/bindrequests", kTeam);
    post(requests, kai_bind_request({{"metadata", {{"name", name}, {"uid", "u"}}}}, node, {group}, false));
    patch(fmt::format("{}/{}/status", requests, name), {{"status", {{"phase", "Succeeded"}}}});
  }
  void start() {
    const auto started = op.start({{"leader-elect", "false"}, {"log-level", "warn"}});
    ASSERT_TRUE(started) << started.error().message;
  }

  const int count = 160;
  const int nodes = 40;
  asio::io_context io{1};
  SimClock clock{io, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")};
  ApiServer server{io.get_executor(), clock};
  InProcessTransport transport{server, {.user = kUser, .user_agent = "gpu-sharing-operator", .latency = 50ms}};
  InProcessOperator op{io.get_executor(), &transport, &clock};
  int deleted = 0;
};

TEST_F(Mass, OrphansAreGoneWithinTheirBoundAndPassesGoOn) {
  for (int i = 0; i < count; ++i) reservation(i);
  start();
  const int each = (count + nodes - 1) / nodes;
  const k8s::Duration bound = 5min + 1min + (each - 1) * 1min;
  const k8s::MonoTime begun = clock.monotonic();
  int slow = 0;
  for (int step = 0; deleted < count && clock.monotonic() - begun < bound + 5min; ++step) {
    const std::uint64_t before = op.view()->passes;
    patch("/api/v1/nodes/n0", {{"metadata", {{"labels", {{"step", std::to_string(step)}}}}}});
    clock.run_for(3s);
    if (op.view()->passes == before) ++slow;
    clock.run_for(7s);
  }
  EXPECT_EQ(deleted, count);
  EXPECT_LE(clock.monotonic() - begun, bound);
  EXPECT_EQ(slow, 0) << "changes that no pass looked at within three seconds";
}

// For the alert: the counter of failures says how many, and not which.
TEST_F(Mass, AReservationThatMustNotBeDeletedIsNamed) {
  transport.faults().add({.fault = Fault::forbidden, .verb = "delete", .resource = "pods", .name = "r-00001"});
  reservation(0);
  reservation(1);
  start();
  const std::string named = R"(gpusharing_affected_objects{reason="ReservationDue",kind="Pod",object="%s/r-0000%d"} 1)";
  const auto is_named = [&](int i) {
    const std::string line = fmt::sprintf(named, kReservations, i);
    return op.metrics_page().value_or("").find(line) != std::string::npos;
  };
  EXPECT_TRUE(clock.run_until([&] { return is_named(1); }, 15min));
  clock.run_for(10min);
  EXPECT_EQ(deleted, 1);
  EXPECT_TRUE(is_named(1)) << op.metrics_page().value_or("");
  EXPECT_FALSE(is_named(0)) << "it is gone";
}

TEST_F(Mass, HealthyMultiDeviceGroupsCostFewRequests) {
  for (int i = 0; i < count; ++i) {
    reservation(i);
    multi_device_consumer(i, i % 8 != 0);
  }
  start();
  clock.run_for(3min);
  for (int minute = 0; minute < 3; ++minute) {
    const std::uint64_t requests = transport.requests();
    clock.run_for(60s);
    EXPECT_LE(transport.requests() - requests, 200u);
  }
  EXPECT_EQ(deleted, 0);
}

}  // namespace
}  // namespace gso::sim::kai_race_test
