// The whole operator beside CRDs of an earlier release: the API server drops the status fields that they do not have.
#include <gmock/gmock.h>

#include "reconcilers/model/labels.h"
#include "tests/controller/runtime/plugin_fleet.h"

namespace gso::older_crds_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

const std::string kPolicy = "/apis/gpusharing.dev/v1alpha1/sharingpolicies/default";

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
}  // namespace gso::older_crds_test
