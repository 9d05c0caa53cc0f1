// Who uses a node's GPUs: what is read, what makes the answer unknown, and what is remembered between two listings.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "controller/config/logging.h"
#include "controller/reading/node_consumers.h"
#include "controller/reading/reads.h"
#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/tenant_memory.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::node_consumers_test {
namespace {

using namespace std::chrono_literals;
using k8s::test::Answer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A pod of namespace `team` that requests so many GPUs. `metadata`: more of it.
std::string pod(const std::string& name, const std::string& gpus, const std::string& metadata = "",
                const std::string& node = "n1") {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"team","uid":"uid-{0}"{1}}},"spec":{{"nodeName":"{2}",)"
      R"("containers":[{{"name":"c","image":"i","resources":{{"limits":{{"nvidia.com/gpu":"{3}"}}}}}}]}},)"
      R"("status":{{"phase":"Running"}}}})",
      name, metadata, node, gpus);
}
std::string page(const std::vector<std::string>& items) {
  return fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"5"}},"items":[{}]}})",
                     fmt::join(items, ","));
}

class NodeConsumersTest : public testing::Test {
 protected:
  k8s::Result<NodeConsumers> read() {
    const k8s::CallOptions limits;
    return sim.run(read_consumers(&client, &sim.clock, &world, &settings, "n1", limits));
  }
  // What was found.
  NodeConsumers found() {
    k8s::Result<NodeConsumers> out = read();
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return out.value_or(NodeConsumers());
  }
  bool refresh() { return sim.run(reader.refresh({"n1"})); }
  void answer(std::vector<std::string> items) { next = Answer::json(200, page(items)); }
  // Pods of node n1 can have GPUs by claims.
  void offer_gpus_by_dra() {
    ResourceSlice slice;
    slice.meta.name = "s";
    slice.driver = k8s::Interned(kGpuDraDriver);
    slice.node = k8s::Interned("n1");
    slice.offers = true;
    world.resource_slices.init();
    world.resource_slices.init_apply(slice);
    world.resource_slices.init_done();
  }

  Sim sim;
  std::string log;
  Answer next = Answer::json(200, page({}));
  std::map<std::string, Answer> claims;  // By name.
  k8s::test::ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& request) {
                                           const std::string& path = request.path;
                                           const auto claim = claims.find(path.substr(path.rfind('/') + 1));
                                           return claim == claims.end() ? next : claim->second;
                                         }};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  World world;
  FleetIndex index;
  PlannerSettings settings;
  std::vector<k8s::Duration> woken;
  NodeConsumersReader reader{{.client = &client,
                              .clock = &sim.clock,
                              .world = &world,
                              .index = &index,
                              .settings = &settings,
                              .log = std::make_shared<Logger>(
                                  LogFormat::text, LogLevel::debug, [this] { return sim.clock.now(); },
                                  [this](const std::string& line) { log += line + "\n"; }),
                              .executor = sim.io.get_executor(),
                              .wake = [this](k8s::Duration after) { woken.push_back(after); }}};
};

// Anybody who may create pods can name the node in as many as a namespace holds. A part of them is no answer: among the
// others can be those that must not be interrupted.
TEST_F(NodeConsumersTest, MorePodsThanCanBeKeptAreAnAnswerThatSaysSo) {
  std::vector<std::string> items;
  for (int i = 0; i < 3000; ++i) items.push_back(pod("p" + std::to_string(i), "1"));
  answer(items);
  const NodeConsumers listed = found();
  EXPECT_THAT(listed.unknown, AllOf(HasSubstr("node n1"), HasSubstr("team/p2999"), HasSubstr("delete some")));
  EXPECT_GT(listed.pods.size(), 1000U) << "those that were kept can be evicted";
}

// As many pods as a kubelet takes, with more labels than most have, are all kept, with the labels that name their jobs.
TEST_F(NodeConsumersTest, AllPodsOfAFullNodeAreKeptWhateverTheirLabels) {
  std::string labels = R"(,"labels":{"job-name":"train")";
  for (int i = 0; i < 60; ++i) labels += fmt::format(R"(,"example.com/label-{0}":"a-value-of-some-length-{0}")", i);
  std::vector<std::string> items;
  for (int i = 0; i < 250; ++i) items.push_back(pod("p" + std::to_string(i), "1", labels + "}"));
  answer(items);
  const NodeConsumers listed = found();
  EXPECT_EQ(listed.pods.size(), 250U);
  std::size_t bytes = 0;
  for (const Pod& one : listed.pods) {
    EXPECT_TRUE(job_of(one).has_value());
    bytes += memory_of(one);
  }
  EXPECT_LE(bytes, most_bytes(TenantFed::node_consumers));
}

// The API server accepts a request for more GPUs than there are from anybody, and for more than 64 bits hold.
TEST_F(NodeConsumersTest, PodsThatUseGpusAreConsumersAndThoseThatCannotBeDecodedMakeTheAnswerUnknown) {
  answer({pod("job", "9200P"), pod("other", "9223372036854775807"), pod("third", "1e30"), pod("web", "0")});
  const NodeConsumers listed = found();
  EXPECT_EQ(listed.unknown, "");
  ASSERT_EQ(listed.pods.size(), 3U);
  for (const Pod& one : listed.pods) EXPECT_GT(one.gpu_requests.begin()->second, 1'000'000) << one.meta.name;
  EXPECT_THAT(transport.requests.front().path, HasSubstr("spec.nodeName"));
  answer({pod("job", "2"), pod("odd", "many"), pod("other", "1"), pod("strange", "many")});
  const NodeConsumers unknown = found();
  EXPECT_THAT(unknown.unknown, AllOf(HasSubstr("node n1"), HasSubstr("Pod team/odd: "), HasSubstr("Pod team/strange: "),
                                     Not(HasSubstr("team/job"))));
  EXPECT_EQ(unknown.pods.size(), 2U);
}

TEST_F(NodeConsumersTest, AForbiddenListNamesTheMissingRule) {
  next = Answer::status_of(403, "Forbidden",
                           "pods is forbidden: User \\\"oncall\\\" cannot list resource \\\"pods\\\" in API group "
                           "\\\"\\\" at the cluster scope");
  const k8s::Result<NodeConsumers> found = read();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().reason, k8s::Reason::forbidden);
  EXPECT_THAT(found.error().message, HasSubstr("resources: [pods], verbs: [list]"));
}

TEST_F(NodeConsumersTest, ANodeThatWasListedAMomentAgoIsNotListedAgain) {
  answer({pod("job", "2")});
  EXPECT_TRUE(refresh());
  EXPECT_FALSE(refresh());
  EXPECT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(woken.size(), 1U) << "the pass is repeated when the listing is old enough";
  sim.clock.run_for(1s);
  EXPECT_TRUE(refresh());
}

// A pod without a request that has these claims, by the names that its status has for them.
std::string claiming(const std::string& name, const std::vector<std::string>& claims) {
  std::vector<std::string> asked;
  std::vector<std::string> made;
  for (const std::string& claim : claims) {
    asked.push_back(fmt::format(R"({{"name":"for-{}","resourceClaimTemplateName":"t"}})", claim));
    made.push_back(fmt::format(R"({{"name":"for-{0}","resourceClaimName":"{0}"}})", claim));
  }
  return fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"team","uid":"uid-{0}"}},"spec":{{"nodeName":"n1",)"
                     R"("resourceClaims":[{1}],"containers":[{{"name":"c"}}]}},"status":{{"phase":"Running",)"
                     R"("resourceClaimStatuses":[{2}]}}}})",
                     name, fmt::join(asked, ","), fmt::join(made, ","));
}
// A claim that is allocated to devices of this driver; empty: it is not allocated.
Answer claim(const std::string& name, const std::string& driver) {
  const std::string results =
      R"({"allocation":{"devices":{"results":[{"request":"r","driver":")" + driver + R"("}]}}})";
  return Answer::json(200, R"({"kind":"ResourceClaim","metadata":{"name":")" + name +
                               R"(","namespace":"team"},"status":)" + (driver.empty() ? "{}" : results) + "}");
}

// A claim can be for a network card: what it is allocated to decides, and is read once.
TEST_F(NodeConsumersTest, AClaimCountsIfItsDriverIsOneOfGpus) {
  offer_gpus_by_dra();
  claims = {
      {"net", claim("net", "dra.networking")}, {"gpu", claim("gpu", kGpuDraDriver.data())}, {"new", claim("new", "")}};
  answer({claiming("web", {"net"}), claiming("train", {"net", "gpu"}), claiming("comes", {"new"}), pod("asks", "1")});
  EXPECT_TRUE(refresh());
  const auto shown = [&] {
    std::vector<std::string> names;
    for (const Pod& one : reader.listings().at("n1").pods) names.emplace_back(one.meta.name);
    return names;
  };
  EXPECT_THAT(shown(), ElementsAre("train", "comes", "asks"));
  EXPECT_EQ(reader.listings().at("n1").unknown, "");
  EXPECT_EQ(transport.requests.size(), 5U) << "the list, and the claims until one is for a GPU";
  claims.at("net") = Answer::broken();
  claims.at("gpu") = Answer::broken();
  claims.at("new") = claim("new", "dra.networking");
  answer({claiming("web", {"net"}), claiming("train", {"net", "gpu"}), claiming("comes", {"new"})});
  sim.clock.run_for(1s);
  EXPECT_TRUE(refresh());
  EXPECT_THAT(shown(), ElementsAre("train"));
  EXPECT_EQ(reader.listings().at("n1").unknown, "");
}

TEST_F(NodeConsumersTest, AClaimThatCannotBeReadMakesTheAnswerUnknownAndOneThatDoesNotExistOnlyItsPodAConsumer) {
  world.resource_slices.init();
  world.resource_slices.init_done();
  answer({claiming("web", {"net"})});
  EXPECT_EQ(found().pods.size(), 0U) << "no DRA driver offers GPUs of the node";
  EXPECT_EQ(transport.requests.size(), 1U) << "no claim is read where nothing depends on it";
  offer_gpus_by_dra();
  claims = {{"net", Answer::status_of(403, "Forbidden",
                                      "resourceclaims.resource.k8s.io \\\"net\\\" is forbidden: User "
                                      "\\\"oncall\\\" cannot get resource \\\"resourceclaims\\\" in API group "
                                      "\\\"resource.k8s.io\\\" in the namespace \\\"team\\\"")},
            {"gone", Answer::status_of(404, "NotFound", "resourceclaims.resource.k8s.io \\\"gone\\\" not found")}};
  const NodeConsumers doubtful = found();
  EXPECT_EQ(doubtful.pods.size(), 1U) << "in doubt it uses a GPU";
  EXPECT_THAT(doubtful.unknown, AllOf(HasSubstr("pod team/web"), HasSubstr("ResourceClaim net"),
                                      HasSubstr("resourceclaims], verbs: [get]")));
  answer({claiming("web", {"gone"})});
  const NodeConsumers missing = found();
  EXPECT_EQ(missing.pods.size(), 1U) << "it might get a GPU";
  EXPECT_EQ(missing.unknown, "") << "or anybody could keep the node from its change by a name";
}

// An API server that has no index of nodes reads all pods for each list.
TEST_F(NodeConsumersTest, AListThatTakesLongHoldsUpNoOtherNode) {
  next = Answer::json(200, page({pod("job", "2")}), 8s);
  const auto began = sim.clock.monotonic();
  EXPECT_FALSE(refresh());
  EXPECT_LE(sim.clock.monotonic() - began, 1s);
  EXPECT_TRUE(reader.is_busy());
  next.takes = 1ms;
  EXPECT_TRUE(sim.run(reader.refresh({"n1", "n2"})));
  EXPECT_EQ(transport.requests.size(), 2U) << "n1 is being listed";
  EXPECT_TRUE(reader.listings().contains("n2"));
  EXPECT_FALSE(reader.listings().contains("n1"));
  woken.clear();
  sim.clock.run_for(8s);
  EXPECT_TRUE(reader.listings().contains("n1"));
  EXPECT_EQ(woken.size(), 1U) << "planned with at once";
  EXPECT_FALSE(reader.is_busy());
}

TEST_F(NodeConsumersTest, AListThatFailsLeavesTheFormerOneWhichSaysSoAndIsTriedLessOften) {
  answer({pod("job", "2")});
  EXPECT_TRUE(refresh());
  const NodeConsumers& listing = reader.listings().at("n1");
  const k8s::MonoTime listed_at = listing.listed_at;
  sim.clock.run_for(1s);
  next = Answer::status_of(403, "Forbidden", "pods is forbidden");
  const std::size_t before = transport.requests.size();
  for (int second = 0; second < 120; ++second) {
    refresh();
    sim.clock.run_for(1s);
  }
  EXPECT_LE(transport.requests.size() - before, 9U) << "after 1, 2, 4, 8, 16 and then 30 s";
  EXPECT_EQ(listing.listed_at, listed_at) << "it is as old as it is";
  EXPECT_EQ(listing.pods.size(), 1U);
  EXPECT_TRUE(listing.failed);
  EXPECT_THAT(listing.unknown,
              HasSubstr("Missing permission: add {apiGroups: [\"\"], resources: [pods], verbs: [list]}"));
  EXPECT_THAT(log, HasSubstr("Listing the pods of a node failed"));
  EXPECT_LE(std::ranges::count(log, '\n'), 4) << log;
  answer({pod("job", "2")});
  sim.clock.run_for(31s);
  EXPECT_TRUE(refresh());
  EXPECT_FALSE(listing.failed);
  EXPECT_EQ(listing.unknown, "");
}

// Where a standalone MPS daemon is to be replaced.
TEST_F(NodeConsumersTest, JobsAreFollowedUnderEvictAlsoOnANodeThatNoPluginServes) {
  Node node;
  node.meta.name = "n1";
  world.nodes.apply(node);
  index.refresh(world, settings);
  const std::string of_job = R"(,"labels":{"batch.kubernetes.io/job-name":"train"})";
  answer({pod("train-0", "1", of_job), pod("train-1", "1", of_job, "n2")});
  EXPECT_TRUE(refresh());
  EXPECT_TRUE(reader.listings().at("n1").jobs.empty()) << "nobody is evicted";
  settings.rollout.workloads = WorkloadMode::evict;
  index.note_everything_changed();
  index.refresh(world, settings);
  sim.clock.run_for(1s);
  EXPECT_TRUE(refresh());
  const auto jobs = reader.listings().at("n1").jobs;
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs.begin()->second, (std::set<std::string>{"n1", "n2"}));
}

// An eviction that was answered while the list was on its way: the pod is ending whatever an older list says.
TEST_F(NodeConsumersTest, AnswersToEvictionsAreKeptWhileThePodExists) {
  answer({pod("kept", "1"), pod("gone", "1")});
  EXPECT_TRUE(refresh());
  Execution execution;
  execution.evictions["n1"]["uid-kept"].text = "the budget says no";
  execution.evictions["n1"]["uid-gone"] = {};
  reader.note_evictions(execution);
  const NodeConsumers& shown = reader.listings().at("n1");
  for (int list = 0; list < 2; ++list) {
    EXPECT_EQ(shown.refused.count("uid-kept"), 1U);
    for (const Pod& one : shown.pods)
      EXPECT_EQ(one.meta.deletion_timestamp.has_value(), one.meta.name == "gone") << one.meta.name;
    sim.clock.run_for(1s);
    EXPECT_TRUE(refresh());
  }
  answer({pod("kept", "1")});
  sim.clock.run_for(1s);
  EXPECT_TRUE(refresh());
  EXPECT_EQ(shown.refused.count("uid-kept"), 1U);
  answer({});
  sim.clock.run_for(1s);
  EXPECT_TRUE(refresh());
  EXPECT_TRUE(shown.refused.empty());
}

// An outage of the API server as one line: its first time and cause, whatever fails after them.
const k8s::WallTime kThen = *k8s::parse_rfc3339("2026-03-01T10:00:00Z");

TEST(ServerOutage, NamesTheHostTheTimeAndTheCauseOfItsFirstError) {
  ServerOutage outage;
  EXPECT_FALSE(outage.is_on());
  outage.failed(
      {k8s::Reason::transport, 0,
       "watch daemonsets: GET /apis/apps/v1/daemonsets?watch=true&timeoutSeconds=519 on 127.0.0.1:6443: cannot "
       "connect: Connection refused"},
      kThen);
  const std::string first =
      "the API server at 127.0.0.1:6443 cannot be reached since 2026-03-01T10:00:00Z, and this view is older: cannot "
      "connect: Connection refused";
  EXPECT_EQ(outage.line(), first);
  outage.failed({k8s::Reason::timeout, 0, "list nodes: GET /api/v1/nodes?limit=500 on h: no answer"}, kThen + 1min);
  EXPECT_EQ(outage.line(), first);
  outage.over();
  EXPECT_EQ(outage.line(), "");
  outage.failed({k8s::Reason::unavailable, 503, "list nodes: shutting down (HTTP 503)"}, kThen + 2min);
  EXPECT_EQ(outage.line(),
            "the API server cannot be reached since 2026-03-01T10:02:00Z, and this view is older: list nodes: shutting "
            "down (HTTP 503)");
}

TEST(ServerOutage, AnAnswerIsNone) {
  EXPECT_TRUE(is_no_answer({k8s::Reason::transport, 0, ""}));
  EXPECT_TRUE(is_no_answer({k8s::Reason::timeout, 0, ""}));
  EXPECT_TRUE(is_no_answer({k8s::Reason::unavailable, 502, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::unavailable, 500, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::forbidden, 403, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::expired, 410, ""}));
}

TEST(ServerOutage, TheQueryOfARequestIsLeftOut) {
  EXPECT_EQ(without_query("watch nodes: GET /api/v1/nodes?watch=true on h: no events"),
            "watch nodes: GET /api/v1/nodes on h: no events");
  EXPECT_EQ(without_query("GET /version?timeout=1"), "GET /version");
  EXPECT_EQ(without_query("GET /version on h: is the address right?"), "GET /version on h: is the address right?");
  EXPECT_EQ(without_query("is it running?"), "is it running?");
}

const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
const std::string kGroup =
    R"({"kind":"APIResourceList","groupVersion":"gpusharing.dev/v1alpha1","resources":[{"name":"sharingpolicies"}]})";

TEST(DiscoveryOnce, AsksTheGroupWhereOnlyTheListOfAllKindsIsForbidden) {
  Sim sim;
  k8s::test::ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest& request) {
    return request.path == "/apis" ? Answer::status_of(403, "Forbidden", "no") : Answer::json(200, kGroup);
  });
  k8s::ApiClient client(&transport, &sim.clock, {});
  DiscoveryOnce discovery(&client);
  for (int asked = 0; asked < 2; ++asked) {
    const k8s::Result<bool> served = sim.run(discovery.served(kPolicies));
    ASSERT_TRUE(served.has_value()) << served.error().message;
    EXPECT_TRUE(*served);
  }
  EXPECT_THAT(transport.lines(),
              ElementsAre("GET /apis", "GET /apis/gpusharing.dev/v1alpha1", "GET /apis/gpusharing.dev/v1alpha1"));
}

TEST(DiscoveryOnce, SaysThatTheServerFailsWithoutAskingEachGroup) {
  Sim sim;
  k8s::test::ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest&) { return Answer::broken(); });
  k8s::ClientOptions options;
  options.max_retries = 0;
  k8s::ApiClient client(&transport, &sim.clock, options);
  DiscoveryOnce discovery(&client);
  for (int asked = 0; asked < 2; ++asked) EXPECT_FALSE(sim.run(discovery.served(kPolicies)).has_value());
  EXPECT_THAT(transport.lines(), testing::Each("GET /apis"));
}

}  // namespace
}  // namespace gso::node_consumers_test
