// A person's command and a server that fails: it ends soon, with what the server answers, and a longer wait is
// announced once.
#include "controller/commands/shared/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include "controller/commands/commands.h"
#include "controller/commands/status.h"
#include "controller/runtime/task_group.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::session_test {
namespace {

using namespace std::chrono_literals;
using k8s::test::Answer;
using testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  int status() {
    return sim.run(
        status_on_cluster(&client, &sim.clock, OutputForm::text, {}, PlannerSettings(), {"ns", "lease"}, &out, &err));
  }
  int explain() {
    const ExplainTarget node{.pod = false, .key = {"", "gpu-1"}};
    return sim.run(
        explain_on_cluster(&client, &sim.clock, node, OutputForm::text, PlannerSettings(), &out, &err, "lease"));
  }
  // One request of a command, with whatever is announced meanwhile.
  void get(const std::string& path) {
    TaskGroup tasks(&sim.clock);
    tasks.spawn(sim.io.get_executor(), notice.announce());
    (void)sim.run(noticed.get_path(path));
    tasks.cancel();
    sim.clock.run_for(1s);
    EXPECT_EQ(tasks.size(), 0U);
  }

  Sim sim;
  std::ostringstream out;
  std::ostringstream err;
  Answer answer = Answer::status_of(500, "InternalError", "etcd is gone");
  k8s::test::ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest&) { return answer; }};
  k8s::ApiClient client{&transport, &sim.clock, interactive_client_options(Options())};
  WaitNotice notice{{.behind = &transport,
                     .clock = &sim.clock,
                     .command = "gpu-sharing-operator audit",
                     .server = "https://10.0.0.1:6443",
                     .request_timeout = 30s,
                     .err = &err}};
  k8s::ApiClient noticed{&notice, &sim.clock, interactive_client_options(Options())};
};

TEST_F(SessionTest, AServerThatAnswers500EndsACommandAfterAFewRequests) {
  EXPECT_EQ(status(), 2);
  EXPECT_THAT(err.str(), HasSubstr("status: list nodes: etcd is gone (HTTP 500)"));
  EXPECT_LE(transport.requests.size(), 24U) << "eight kinds, three attempts each";
  EXPECT_LE(sim.clock.monotonic().since_boot, 15s);
}

TEST_F(SessionTest, SoDoesOneThatAsksForPatience) {
  answer = Answer::status_of(503, "ServiceUnavailable", "starting", "20");
  EXPECT_EQ(status(), 2);
  EXPECT_LE(transport.requests.size(), 16U);
  EXPECT_LE(sim.clock.monotonic().since_boot, 60s);
}

TEST_F(SessionTest, ACommandThatReadsTheLeaseFirstEndsAsSoon) {
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_EQ(explain(), 2);
  EXPECT_LE(sim.clock.monotonic() - begun, 30s);
}

TEST_F(SessionTest, RequestTimeoutBoundsARequestWithItsRetries) {
  Options options;
  options.request_timeout = 4s;
  k8s::ApiClient hurried(&transport, &sim.clock, interactive_client_options(options));
  answer.takes = 1h;
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_FALSE(sim.run(hurried.get_path("/version")));
  EXPECT_LE(sim.clock.monotonic() - begun, 4s);
}

TEST_F(SessionTest, AWaitForAnAnswerIsAnnouncedOnce) {
  answer = Answer::json(200, "{}", 20s);
  get("/api/v1/nodes?limit=500");
  EXPECT_EQ(err.str(),
            "gpu-sharing-operator audit: waiting for the API server https://10.0.0.1:6443: no answer to GET "
            "/api/v1/nodes yet. A request ends after 30s (--request-timeout)\n");
}

TEST_F(SessionTest, AWaitBetweenAttemptsNamesWhatTheServerAnswers) {
  answer = Answer::status_of(503, "ServiceUnavailable", "starting", "10");
  get("/api/v1/nodes");
  EXPECT_THAT(err.str(), HasSubstr("it answers GET /api/v1/nodes with HTTP 503. A request ends"));
  EXPECT_EQ(std::ranges::count(err.str(), '\n'), 1) << err.str();
}

TEST_F(SessionTest, AFailureThatEndsWithAQuestionGetsNoSecondStop) {
  answer = Answer::broken();
  answer.takes = 3s;
  answer.error->message = "cannot connect: refused; is the address right?";
  get("/api/v1/nodes");
  EXPECT_THAT(err.str(), HasSubstr("is the address right? A request ends"));
}

TEST_F(SessionTest, AShortWaitAndALiveViewAreNotAnnounced) {
  answer = Answer::json(200, "{}", 3s);
  get("/api/v1/nodes");
  EXPECT_EQ(err.str(), "");
  notice.end();
  answer.takes = 20s;
  get("/api/v1/nodes");
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace gso::session_test
