// The whole operator on the simulated API server: leader changes, stops, crashes and losses of the connection.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "reconcilers/model/plan.h"
#include "tests/controller/operators.h"
#include "tests/k8sclient/transport/test_certificates.h"

namespace gso::manager_end_test {
namespace {

using namespace std::chrono_literals;

const k8s::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const k8s::ObjectKey kLease{"gpu-sharing-operator", "gpu-sharing-operator"};

class Ends : public ManagerTest {
 protected:
  [[nodiscard]] std::string holder() const { return server.get(kLeases, kLease)->at("spec").at("holderIdentity"); }
  // The first policy is created, and its answer is lost.
  void lose_an_answer() {
    a.transport.faults().add(
        {.fault = sim::Fault::ambiguous, .verb = "create", .resource = "sharingpolicies", .times = 1});
    a.start(sim);
    ASSERT_TRUE(eventually([&] { return a.transport.faults().count(sim::Fault::ambiguous) == 1; }));
  }
  bool stops(Duration limit) {
    a.stop->notify();
    return eventually([&] { return a.result.has_value(); }, limit);
  }
};

TEST_F(Ends, ACleanStopReleasesTheLeaseAndTheStandbyTakesOverWithoutRelisting) {
  install_crds();
  lead(a);
  run(1min);
  std::vector<std::string> notes;
  for (const auto& event : server.list({"events.k8s.io", "v1", "events"}))
    if (event.at("reason") == "LeaderElection") notes.push_back(event.at("note"));
  EXPECT_EQ(notes, std::vector<std::string>{"a became leader"});
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; })) << "a warm standby";
  EXPECT_FALSE(b.view->leading);
  EXPECT_EQ(b.view->passes, 0U);
  const std::uint64_t requests = b.transport.requests();
  ASSERT_TRUE(stops(10s));
  EXPECT_TRUE(a.result->has_value());
  EXPECT_TRUE(a.view->finished);
  EXPECT_TRUE(eventually([&] { return b.view->leading; }, 200ms)) << "its watch shows that the Lease is free";
  run(5s);
  EXPECT_LE(b.transport.requests() - requests, 10U) << "the Lease, the record and the nodes in a change";
  run(10min);
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(Ends, ALeaderRecreatesADeletedLeaseAndAStandbyThatMustNotWatchItTakesOverALittleLater) {
  install_crds();
  for (const char* verb : {"watch", "list"}) {
    b.transport.faults().add({.fault = sim::Fault::forbidden, .verb = verb, .resource = "leases"});
  }
  lead(a);
  remove("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases/gpu-sharing-operator");
  EXPECT_TRUE(eventually([&] { return server.get(kLeases, kLease).has_value(); }, 200ms)) << "created anew at once";
  EXPECT_TRUE(a.view->leading);
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; }));
  ASSERT_TRUE(stops(10s));
  EXPECT_TRUE(eventually([&] { return b.view->leading; }, 5s));
}

// A successor that leads at once could write beside the write that was cancelled here (S4).
TEST_F(Ends, AStopWithAnUnansweredWriteKeepsTheLeaseUntilItExpires) {
  install_crds();
  a.options.shutdown_timeout = 1s;
  a.transport.faults().add(
      {.fault = sim::Fault::latency, .verb = "create", .resource = "sharingpolicies", .delay = 9s});
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.metric("gpusharing_writes_in_flight") == 1; }));
  b.start(sim);
  ASSERT_TRUE(stops(3s));
  EXPECT_EQ(holder(), "a");
  run(9s);
  EXPECT_FALSE(b.view->leading) << "the write can still land";
  EXPECT_TRUE(eventually([&] { return b.view->leading && b.view->idle; }, 30s));
  EXPECT_EQ(created_policies(), 1U);
}

// Whoever asks in vain has given up, the server need not have.
TEST_F(Ends, AStopAMomentAfterAnAnswerWasLostKeepsTheLeaseUntilItExpires) {
  install_crds();
  lose_an_answer();
  b.start(sim);
  run(3s);
  ASSERT_TRUE(stops(3s));
  EXPECT_EQ(holder(), "a");
  EXPECT_TRUE(eventually([&] { return b.view->leading && b.view->idle; }, 30s));
  EXPECT_EQ(created_policies(), 1U);
}

// The Event about the election is refused, and with it Events pause; its second attempt waits for its turn then.
TEST_F(Ends, AStopDropsTheWritesThatStillWaitForTheirTurnAndReleasesTheLease) {
  install_crds();
  a.transport.faults().add({.fault = sim::Fault::throttle, .resource = "events", .retry_after = 30});
  a.start(sim);
  const auto refused = [&] { return a.transport.faults().count(sim::Fault::throttle); };
  ASSERT_TRUE(eventually([&] { return refused() > 0; }));
  run(2s);
  EXPECT_EQ(created_policies(), 1U) << "no other write waits for Events";
  ASSERT_GE(a.metric("gpusharing_requests_waiting", {{"lane", "events"}}), 1);
  EXPECT_EQ(a.metric("gpusharing_writes_in_flight"), 0);
  const std::uint64_t before = refused();
  EXPECT_TRUE(stops(3s));
  EXPECT_EQ(holder(), "");
  run(1min);
  EXPECT_EQ(refused(), before) << "nothing was sent any more";
}

TEST_F(Ends, AStopLongAfterAnAnswerWasLostReleasesTheLease) {
  install_crds();
  lose_an_answer();
  run(1min);
  ASSERT_TRUE(stops(3s));
  EXPECT_EQ(holder(), "");
}

TEST_F(Ends, AKilledOperatorReleasesNothingAndSendsNothingMore) {
  a.start(sim);
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading || b.view->leading; }));
  OneOperator& leader = a.view->leading ? a : b;
  OneOperator& standby = a.view->leading ? b : a;
  run(1min);
  leader.kill->notify();
  ASSERT_TRUE(eventually([&] { return leader.result.has_value(); }, 10s));
  EXPECT_EQ(leader.result->error().reason, k8s::Reason::cancelled);
  const std::uint64_t requests = leader.transport.requests();
  run(10s);
  EXPECT_FALSE(standby.view->leading);
  EXPECT_TRUE(eventually([&] { return standby.view->leading; }, 12s));
  EXPECT_EQ(leader.transport.requests(), requests);
}

TEST_F(Ends, ALeaderThatIsCutOffStopsWritingStandsByAndLeadsAgain) {
  install_crds();
  lead(a);
  a.transport.set_connected(false);
  run(11s);
  EXPECT_FALSE(a.view->leading);
  EXPECT_FALSE(a.result.has_value()) << "it goes on as a standby";
  a.transport.set_connected(true);
  EXPECT_TRUE(eventually([&] { return a.view->leading; }, 1min));
  a.transport.set_connected(false);
  EXPECT_TRUE(stops(30s)) << "while nothing can be reached";
  EXPECT_TRUE(a.result->has_value());
}

TEST_F(Ends, ExitOnLeaseLossEndsIt) {
  a.options.exit_on_lease_loss = true;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading; }));
  a.transport.set_connected(false);
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 1min));
  EXPECT_EQ(a.result->error().reason, k8s::Reason::unavailable);
}

// A serving certificate in files that somebody else renews.
class ServingCertificateTest : public Ends {
 protected:
  ServingCertificateTest() {
    std::filesystem::create_directories(folder_);
    renew({});
    a.options.metrics_secure = true;
    a.options.metrics_bind_address = "127.0.0.1:0";
    a.options.tls_cert_file = (folder_ / "tls.crt").string();
    a.options.tls_private_key_file = (folder_ / "tls.key").string();
  }
  ~ServingCertificateTest() override { std::filesystem::remove_all(folder_); }
  void renew(const k8s::test::LeafOptions& terms) {
    const k8s::test::Identity identity = authority_.issue(terms);
    std::ofstream(folder_ / "tls.crt") << identity.cert_pem;
    std::ofstream(folder_ / "tls.key") << identity.key_pem;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gso-serving-certificate-" + std::to_string(getpid()));
  k8s::test::TestAuthority authority_{"authority"};
};

TEST_F(ServingCertificateTest, TheGaugeShowsTheEndOfARenewedOneEvenIfNobodyConnects) {
  const auto end = [&] {
    return a.metric("gpusharing_certificate_expiration_timestamp_seconds", {{"server", "metrics"}});
  };
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading; }));
  const double first = end();
  renew({.expired = true});  // Two days before the end of the first one: any other end would do.
  EXPECT_TRUE(eventually([&] { return end() < first - 86'400; }, 2min));
}

TEST_F(ServingCertificateTest, ALoopThatThrowsEndsTheOperatorWithTheReason) {
  bool renewed = false;
  a.on_line = [&](const std::string& line) {
    if (renewed && line.find("Serving certificate loaded") != std::string::npos)
      throw std::runtime_error("the log is full");
  };
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading; }));
  renewed = true;
  renew({});
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 2min));
  ASSERT_FALSE(a.result->has_value());
  EXPECT_EQ(a.result->error().message, "internal error: serving certificate: the log is full");
  EXPECT_EQ(holder(), "") << "it ends cleanly";
}

// The view outlives the operator: a debug function that points into it must not.
TEST_F(Ends, AnOperatorThatEndsByAnExceptionLeavesNoDebugFunctionBehind) {
  bool had_debug = false;
  a.on_line = [&](const std::string& line) {
    had_debug = a.view->debug != nullptr;
    if (line.contains("Started")) throw std::runtime_error("the log is full");
  };
  Runtime runtime = a.runtime(sim);
  runtime.view = a.view;
  std::string thrown;
  boost::asio::co_spawn(sim.io, run_operator(runtime, a.options),
                        [&thrown](const std::exception_ptr& error, const k8s::Result<void>&) {
                          if (error == nullptr) return;
                          try {
                            std::rethrow_exception(error);
                          } catch (const std::exception& e) {
                            thrown = e.what();
                          }
                        });
  run(1s);
  EXPECT_EQ(thrown, "the log is full");
  EXPECT_TRUE(had_debug);
  EXPECT_FALSE(a.view->debug);
}

}  // namespace
}  // namespace gso::manager_end_test
