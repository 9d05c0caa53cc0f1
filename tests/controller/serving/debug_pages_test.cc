// /debug of a running operator: what it shows, what it refuses, and the one thing that it changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/controller/operators.h"

namespace gso::debug_pages_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class DebugPagesTest : public ManagerTest {};

Json debug(OneOperator& one, const std::string& path, bool put = false, int status = 200) {
  HttpRequest request;
  request.method = put ? "PUT" : "GET";
  request.path = path;
  const HttpAnswer answer = one.view->debug(request);
  EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
  return Json::parse(answer.body, nullptr, false);
}

TEST_F(DebugPagesTest, DebugShowsStoresQueueAndNodesAndSetsTheLogLevel) {
  create("/api/v1/nodes",
         R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"bare","labels":{"nvidia.com/gpu.count":"4"}}})");
  a.start(sim);
  EXPECT_TRUE(sim.clock.run_until([&] { return a.view->synced && a.view->passes > 0; }, 1min));
  const Json cache = debug(a, "/debug/cache");
  EXPECT_EQ(cache["synced"], true);
  const auto nodes =
      std::ranges::find_if(cache["stores"], [](const Json& store) { return store["resource"] == "nodes"; });
  ASSERT_NE(nodes, cache["stores"].end());
  EXPECT_EQ((*nodes)["objects"], 2);
  EXPECT_GT((*nodes)["bytes"], 2 * 100);
  EXPECT_GT(a.metric("gpusharing_store_bytes", {{"resource", "nodes"}}), 200);
  EXPECT_EQ(debug(a, "/debug/queue")["leading"], true);
  EXPECT_EQ(debug(a, "/debug/nodes/bare")["state"], "NoPlugin");
  debug(a, "/debug/nodes/nobody", false, 404);
  debug(a, "/debug/other", false, 404);
  debug(a, "/debug/cache", true, 405);
  EXPECT_EQ(debug(a, "/debug/log-level")["level"], "debug");
  EXPECT_EQ(debug(a, "/debug/log-level/warn", true)["level"], "warn");
  debug(a, "/debug/log-level/loud", true, 400);
  EXPECT_EQ(debug(a, "/debug/log-level")["level"], "warn");
}

TEST_F(DebugPagesTest, AStandbyAssessesNoNodeAndNamesWhoDoes) {
  create("/api/v1/nodes",
         R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"bare","labels":{"nvidia.com/gpu.count":"4"}}})");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->passes > 0; }));
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; }));
  run(5s);
  EXPECT_EQ(debug(b, "/debug/nodes/bare", false, 503)["error"], "this replica stands by; ask the leader, a");
  EXPECT_EQ(debug(b, "/debug/queue")["leading"], false);
  EXPECT_EQ(debug(b, "/debug/queue")["leader"], "a");
  EXPECT_EQ(debug(b, "/debug/cache")["leading"], false);
  EXPECT_EQ(debug(a, "/debug/nodes/bare")["state"], "NoPlugin");
}

}  // namespace
}  // namespace gso::debug_pages_test
