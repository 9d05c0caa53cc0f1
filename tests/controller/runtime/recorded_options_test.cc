// The operator's options in its state ConfigMap, which commands of people read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/controller/operators.h"

namespace gso::recorded_options_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class RecordedOptions : public ManagerTest {
 protected:
  RecordedOptions() {
    a.options.operand_namespaces.clear();
    b.options.operand_namespaces.clear();
    install_crds();
    create("/api/v1/namespaces/gpu-operator/configmaps",
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mps-config"},"data":{"any":"version: v1\n"}})");
    create_plugin("gpu-operator");
    const k8s::HttpResponse labelled =
        send(k8s::Method::patch, "/api/v1/nodes/n1",
             R"({"metadata":{"labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}}})");
    EXPECT_EQ(labelled.status, 200);
  }
  std::string recorded() {
    const k8s::HttpResponse answer =
        send(k8s::Method::get, "/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state", "");
    if (answer.status != 200) return "no ConfigMap";
    return Json::parse(answer.body)["data"].value("options.json", "none");
  }
};

TEST_F(RecordedOptions, AreThoseOfTheOperatorThatLeads) {
  a.options.settle = 10s;
  a.options.cluster_max_unavailable = {3, false};
  a.start(sim);
  EXPECT_TRUE(eventually([&] { return recorded() == R"({"cluster-max-unavailable":"3"})"; })) << recorded();
  run(1min);
  const std::size_t before = writes.size();
  run(5min);
  EXPECT_EQ(writes.size(), before) << "written once";
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }));
  b.options.settle = 10s;
  b.start(sim);
  EXPECT_TRUE(eventually([&] { return recorded().empty(); })) << recorded() << ": it has the defaults again";
}

TEST_F(RecordedOptions, AreNotWrittenWhereAllAreDefaults) {
  a.options.settle = 10s;
  a.start(sim);
  run(5min);
  EXPECT_EQ(recorded(), "none");
}

}  // namespace
}  // namespace gso::recorded_options_test
