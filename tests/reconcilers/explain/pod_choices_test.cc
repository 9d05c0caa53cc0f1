// What can end a node's wait for its pods: advice that is true for the pods that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "reconcilers/explain/node.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::pod_choices_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

FleetSpec one_node() {
  FleetSpec spec;
  spec.profiles = {{"any", "mps-4"}};
  spec.nodes = alike_nodes(1, "NVIDIA-A100-SXM4-40GB", "a");
  return spec;
}

constexpr const char* kEvicting =
    "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
    "spec: {rollout: {workloads: Evict}}\n";

// The options of a node that is about to become idle for new MPS clients, and that these pods use.
std::vector<std::string> options_with(FleetModel& fleet, const std::function<void()>& use) {
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  use();
  fleet.edit("any", "mps-8");
  for (int i = 0; i < 30; ++i) (void)fleet.tick();
  fleet.index.refresh(fleet.world, fleet.settings);
  const Timers timers;
  const Snapshot snapshot{fleet.world, fleet.now, timers, fleet.consumers, fleet.settings};
  return explain_node(snapshot, fleet.index, {}, "a01").value_or(NodeExplanation()).options;
}

// What an administrator is advised to set must end the wait: Evict alone never evicts a pod without a controller, and
// evicts no other pod of a node that waits for one.
TEST(PodChoices, EvictIsProposedWithWhatThePodsThatAreThereNeed) {
  const auto both = HasSubstr("sets spec.rollout.workloads: Evict and spec.rollout.evictBarePods: true (kubectl edit");
  const auto nobody = HasSubstr("jobs/notebook has no controller, so nothing creates it again");
  for (const bool beside : {false, true}) {
    FleetModel fleet(one_node());
    EXPECT_THAT(options_with(fleet,
                             [&] {
                               fleet.use_bare("a01", "notebook");
                               if (beside) fleet.use("a01", "job", "nvidia.com/gpu", 1);
                             }),
                ElementsAre(HasSubstr("nobody acts"), "the owners of the pods end them, or delete them",
                            AllOf(both, HasSubstr("eviction.enabled=true"), nobody), HasSubstr("workloads: Interrupt")))
        << "beside another pod: " << beside;
  }
}

TEST(PodChoices, EvictIsNotProposedWhereAPodRefusesItsEviction) {
  for (const char* policy : {"", kEvicting}) {
    FleetModel fleet(one_node());
    if (*policy != '\0') fleet.policy(policy);
    const auto options = options_with(fleet, [&] {
      fleet.use("a01", "train", "nvidia.com/gpu", 1, {{std::string(kDoNotDisruptAnnotation), "true"}});
      fleet.use_bare("a01", "notebook");
    });
    const auto owners = *policy != '\0' ? testing::Matcher<std::string>(
                                              "the owners of the pods end them, delete them, or remove the annotation "
                                              "gpusharing.dev/do-not-disrupt=true, which forbids their eviction")
                                        : AllOf(HasSubstr("`workloads: Evict` does not help here: jobs/train has the "
                                                          "annotation gpusharing.dev/do-not-disrupt=true"),
                                                Not(HasSubstr("notebook")));
    EXPECT_THAT(options, ElementsAre(HasSubstr("nobody acts"), owners, HasSubstr("workloads: Interrupt"))) << policy;
  }
}

}  // namespace
}  // namespace gso::test::pod_choices_test
