// The whole operator with views and answers that are behind: watches that fail for an hour, a standby that lags, a
// server that goes back in time, or one that takes ten seconds for one SharingRollout.
#include <gmock/gmock.h>

#include "reconcilers/model/labels.h"
#include "tests/controller/runtime/plugin_fleet.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::stale_views_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kPolicies = "/apis/gpusharing.dev/v1alpha1/sharingpolicies";
const std::string kPolicy = kPolicies + "/default";

// Two idle nodes run four replicas of two GPUs, and one node of the cluster may be unavailable.
class StaleViews : public PluginFleetTest {
 protected:
  StaleViews() {
    install_crds();
    add_node("n2");
    for (const char* name : {"n1", "n2"}) add_sharing_node(name);
    for (OneOperator* one : {&a, &b}) one->options.cluster_max_unavailable = {1, false};
  }
  bool any_in_change() { return in_change("n1") || in_change("n2"); }
  // Leads, at rest.
  void settle(OneOperator& one) {
    lead(one);
    run(2min);
    ASSERT_FALSE(any_in_change());
  }
  void refuse(const std::string& verb, const std::string& resource) {
    a.transport.faults().add({.fault = sim::Fault::forbidden, .verb = verb, .resource = resource});
  }
  double findings() { return a.metric("gpusharing_findings", {{"severity", "warning"}, {"reason", "ViewStale"}}); }
};

struct LostWatch {
  const char* what;
  std::string resource;
  bool lists_as_well;
  std::string path;  // What the person changes there, unseen,
  Json unseen;
  Json back;  // and takes back.
};
void PrintTo(const LostWatch& lost, std::ostream* out) {
  *out << lost.what;
}

class LostWatches : public StaleViews, public testing::WithParamInterface<LostWatch> {};

// The right to watch is taken away. Streams that are open go on for up to ten minutes.
TEST_P(LostWatches, ForAnHourStartNoNode) {
  const LostWatch& lost = GetParam();
  settle(a);
  refuse("watch", lost.resource);
  if (lost.lists_as_well) refuse("list", lost.resource);
  run(15min);
  EXPECT_EQ(a.metric("gpusharing_watch_current", {{"resource", lost.resource}}), 0);
  EXPECT_GT(a.metric("gpusharing_watch_stale_seconds", {{"resource", lost.resource}}), 150);
  EXPECT_EQ(findings(), 1);
  merge(lost.path, lost.unseen);
  edit();
  for (int minute = 0; minute < 60; ++minute) {
    run(1min);
    ASSERT_FALSE(any_in_change()) << minute;
  }
  a.transport.faults().clear();
  merge(lost.path, lost.back);
  EXPECT_TRUE(eventually([&] { return any_in_change(); }, 5min));
  EXPECT_TRUE(eventually([&] { return findings() == 0; }));
  EXPECT_EQ(a.metric("gpusharing_watch_current", {{"resource", lost.resource}}), 1);
}

const Json kReady = {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
const Json kNotReady = {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}};
const Json kPaused = {{"spec", {{"rollout", {{"paused", true}}}}}};
const Json kResumed = {{"spec", {{"rollout", {{"paused", false}}}}}};
INSTANTIATE_TEST_SUITE_P(Each, LostWatches,
                         testing::Values(LostWatch{"a node that became NotReady", "nodes", true,
                                                   "/api/v1/nodes/n2/status", kNotReady, kReady},
                                         LostWatch{"a node that became NotReady, which lists show", "nodes", false,
                                                   "/api/v1/nodes/n2/status", kNotReady, kReady},
                                         LostWatch{"a pause", "sharingpolicies", true, kPolicy, kPaused, kResumed},
                                         LostWatch{"nothing at all", "sharingrollouts", false, kPolicy, kResumed,
                                                   kResumed}));

// The old leader has started n1. The standby sees the edit, and nothing of that node for a minute.
TEST_F(StaleViews, AStandbyThatLagsReadsWhatTheLeaderBeforeHasWritten) {
  settle(a);
  b.start(sim);
  run(3min);
  b.transport.faults().add({.fault = sim::Fault::latency, .verb = "watch", .resource = "nodes", .delay = 60s});
  edit();
  ASSERT_TRUE(eventually([&] { return any_in_change(); }, 30s));
  const std::string other = in_change("n1") ? "n2" : "n1";
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return b.view->leading; }, 30s));
  for (int i = 0; i < 90; ++i) {
    run(1s);
    ASSERT_FALSE(in_change(other)) << "a second node within a budget of one, after " << i << " s";
  }
}

class NewLeader : public StaleViews, public testing::WithParamInterface<sim::Fault> {};

// The nodes in a change are read by a list; watches work.
TEST_P(NewLeader, PlansNothingWhileItCannotReadTheNodesInAChangeAndSaysWhatItWaitsFor) {
  settle(a);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 1min));
  b.transport.faults().add({.fault = GetParam(), .verb = "list", .resource = "nodes"});
  Manager manager(b.runtime(sim), b.options, sim.io.get_executor());
  manager.start();
  edit();
  run(5min);
  EXPECT_FALSE(any_in_change());
  EXPECT_FALSE(manager.ready().ok);
  EXPECT_TRUE(manager.leading());
  EXPECT_THAT(manager.ready().text, HasSubstr("nothing is planned until this leader has read"));
  b.transport.faults().clear();
  EXPECT_TRUE(eventually([&] { return any_in_change(); }, 1min));
  EXPECT_TRUE(manager.ready().ok) << manager.ready().text;
  sim.run(end(&manager));
}
INSTANTIATE_TEST_SUITE_P(Each, NewLeader, testing::Values(sim::Fault::forbidden, sim::Fault::server_error));

// A CRD whose conversion webhook is down: what was known to be empty is not known any more.
TEST_F(StaleViews, AnApiThatAppearsAndCannotBeListedIsNotTakenForAnEmptyOne) {
  const auto current = [&] { return a.metric("gpusharing_watch_current", {{"resource", "bindrequests"}}); };
  a.options.discovery_period = 2s;
  Manager manager(a.runtime(sim), a.options, sim.io.get_executor());
  manager.start();
  run(1min);
  EXPECT_TRUE(manager.ready().ok) << manager.ready().text;
  EXPECT_EQ(current(), 1) << "absent";
  a.transport.faults().add(always(sim::Fault::server_error, "bindrequests"));
  post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", sim::kai_bind_request_crd());
  run(3s);
  EXPECT_EQ(current(), 0);
  edit();
  for (int minute = 0; minute < 10; ++minute) {
    run(1min);
    ASSERT_FALSE(any_in_change()) << minute;
  }
  EXPECT_EQ(current(), 0);
  EXPECT_GT(a.metric("gpusharing_watch_stale_seconds", {{"resource", "bindrequests"}}), 150);
  EXPECT_LT(a.transport.faults().use(0).applied, 60) << "its back-off grows to half a minute";
  EXPECT_EQ(findings(), 1);
  EXPECT_THAT(manager.ready().text, HasSubstr("bindrequests not synced: "));
  a.transport.faults().clear();
  EXPECT_TRUE(eventually([&] { return any_in_change(); }, 1min));
  EXPECT_EQ(current(), 1);
  EXPECT_TRUE(manager.ready().ok) << manager.ready().text;
  sim.run(end(&manager));
}

TEST_F(StaleViews, AfterARestoreEverythingIsListedAgainBeforeAnythingIsPlanned) {
  settle(a);
  edit();
  ASSERT_TRUE(eventually([&] { return any_in_change(); }, 30s));
  server.forget_last(20s);
  ASSERT_FALSE(any_in_change());
  edit();
  EXPECT_TRUE(eventually([&] { return a.log.find("everything is listed again") != std::string::npos; }, 3min));
  EXPECT_TRUE(eventually([&] { return any_in_change(); }, 5min));
  EXPECT_FALSE(in_change("n1") && in_change("n2"));
}

// Nothing else has been written for a while, and others write at once when the server is back.
TEST_F(StaleViews, ALostRenewalOfTheLeaseMakesEverythingBeListedAgain) {
  settle(a);
  run(10min);
  server.forget_last(15s);
  for (int i = 0; i < 40; ++i) add_namespace("team-" + std::to_string(i));
  EXPECT_TRUE(eventually([&] { return a.log.find("everything is listed again") != std::string::npos; }, 30s));
}

// n1 is of policy a and n2 of policy b, and a Job uses six replicas on n1.
class SlowRollout : public StaleViews {
 protected:
  SlowRollout() {
    add_namespace("team");
    create_pod("team", "train", "n1", "6");
    for (const auto& [node, policy] : {std::pair("n1", "a"), std::pair("n2", "b")}) {
      const Json labels{{"policy", policy}};
      merge(std::string("/api/v1/nodes/") + node, {{"metadata", {{"labels", labels}}}});
      post(kPolicies, Json{{"apiVersion", "gpusharing.dev/v1alpha1"},
                           {"kind", "SharingPolicy"},
                           {"metadata", {{"name", policy}}},
                           {"spec", {{"nodeSelector", {{"matchLabels", labels}}}}}}
                          .dump());
    }
    a.options.cluster_max_unavailable = {2, false};
  }
  void pause(bool paused) { merge(kPolicies + "/a", {{"spec", {{"rollout", {{"paused", paused}}}}}}); }
  // The key is edited for both policies, and the creation of policy a's SharingRollout takes ten seconds: it is the
  // second one, because idle nodes are planned before busy ones. Returns while it is not answered.
  void edit_with_a_slow_rollout() {
    settle(a);
    a.transport.faults().add({.fault = sim::Fault::webhook,
                              .verb = "create",
                              .resource = "sharingrollouts",
                              .skip = 1,
                              .times = 1,
                              .delay = 10s});
    edit();
    ASSERT_TRUE(eventually([&] { return a.transport.faults().count(sim::Fault::webhook) == 1; }));
    ASSERT_FALSE(any_in_change());
  }
};

TEST_F(SlowRollout, HoldsTheNodesOfItsPolicyAndThoseOfOthersStartWithinASecond) {
  edit_with_a_slow_rollout();
  int lists = 0;
  a.transport.set_request_listener([&lists](const k8s::HttpRequest& request) {
    if (request.path.contains("spec.nodeName") && request.path.contains("n1")) ++lists;
  });
  const std::uint64_t passes = a.view->passes;
  EXPECT_TRUE(eventually([&] { return in_change("n2"); }, 1100ms));
  run(8s);
  EXPECT_FALSE(in_change("n1"));
  EXPECT_LE(lists, 1) << "of the pods of a node that waits for it";
  EXPECT_LE(a.view->passes - passes, 30U);
  a.transport.set_request_listener(nullptr);
  EXPECT_TRUE(eventually([&] { return in_change("n1"); }, 3s)) << "once it is recorded";
}

TEST_F(SlowRollout, APauseThatArrivesBeforeTheAnswerHolds) {
  edit_with_a_slow_rollout();
  run(5s);
  pause(true);
  run(1min);
  EXPECT_FALSE(in_change("n1"));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts")["items"].size(), 2U) << "it was created all the same";
  pause(false);
  EXPECT_TRUE(eventually([&] { return in_change("n1"); }, 5s));
}

// CRDs of an earlier release: the API server drops the status fields that they do not have.
class OlderCrds : public PluginFleetTest {
 protected:
  OlderCrds() {
    install_crds();
    add_sharing_node("n1");
    a.start(sim);
    EXPECT_TRUE(eventually([&] { return get(kPolicy).contains("status"); }));
  }
  // Field of the CRD's status, which it has from now on, or has no more.
  void set_status_field(const std::string& name, const Json& schema) {
    const std::string crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sharingpolicies.gpusharing.dev";
    Json versions = get(crd)["spec"]["versions"];
    Json& fields = versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    fields.erase(name);
    if (!schema.is_null()) fields[name] = schema;
    merge(crd, {{"spec", {{"versions", versions}}}});
    run(1s);
  }
  void retry(const std::string& value) {
    merge(kPolicy, {{"metadata", {{"annotations", {{std::string(kRetryAnnotation), value}}}}}});
  }
  std::string observed() { return get(kPolicy)["status"].value("observedRetry", ""); }
  // How often the operator writes the policy in ten minutes.
  std::ptrdiff_t written() {
    writes.clear();
    run(10min);
    return std::ranges::count_if(writes, [](const std::string& line) { return line.contains("sharingpolicies"); });
  }
};

TEST_F(OlderCrds, AFieldThatTheyDropIsWrittenOnceAndNamedOnceUntilTheyHaveIt) {
  run(1min);
  set_status_field("observedRetry", nullptr);
  retry("1");
  EXPECT_EQ(written(), 1) << "the one that tries it";
  EXPECT_FALSE(get(kPolicy)["status"].contains("observedRetry"));
  EXPECT_EQ(written(), 0);
  EXPECT_TRUE(writes.empty()) << "a cluster at rest: " << writes.front();
  retry("2");
  EXPECT_EQ(written(), 0) << "it would change nothing";
  const std::size_t named = a.log.find("The API server drops fields of the status");
  ASSERT_NE(named, std::string::npos);
  EXPECT_THAT(a.log.substr(named, 300), AllOf(HasSubstr("SharingPolicy"), HasSubstr("/observedRetry")));
  EXPECT_EQ(a.log.find("The API server drops fields of the status", named + 1), std::string::npos);

  set_status_field("observedRetry", {{"type", "string"}});  // They are applied: the next status has the field.
  merge(kPolicy, {{"spec", {{"rollout", {{"paused", true}}}}}});
  EXPECT_TRUE(eventually([&] { return observed() == "2"; }));
  retry("3");
  EXPECT_TRUE(eventually([&] { return observed() == "3"; }));
}

}  // namespace
}  // namespace gso::stale_views_test
