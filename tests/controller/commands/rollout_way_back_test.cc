// What `rollout status` offers to whoever has paused or aborted a rollout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_way_back_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

class WayBack : public RolloutCommand {
 protected:
  // To the present text of the key.
  std::string name_of_present() { return rollout_name({"default", "gpu-operator/mps-config", "any"}, target()); }
  // What an operator has written about the rollout.
  void report(const std::string& name, const std::string& phase, const std::string& reason) {
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", "it is so"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status",
          Json{{"status", {{"phase", phase}, {"conditions", Json::array({condition})}}}}.dump());
  }
};

TEST_F(WayBack, APausedRolloutNamesTheUndoBesideTheResume) {
  record_an_earlier_text();
  const std::string r = name_of_present();
  rollout(r, "Progressing", target());
  const std::string undo = "  next: gpu-sharing-operator rollout undo " + r + " --dry-run  # to go back\n";
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), Not(HasSubstr(undo))) << "nothing is wrong yet";
  ASSERT_EQ(run(Verb::pause), 0) << err.str();
  for (const char* when : {"recorded", "applied"}) {
    EXPECT_EQ(run(Verb::status), 0) << when;
    EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume " + r + "  # continues to "));
    EXPECT_THAT(out.str(), HasSubstr(undo)) << when;
    report(r, "Paused", "Paused");
  }
}

TEST_F(WayBack, AnAbortedRolloutNamesTheUndoBesideTheRetry) {
  record_an_earlier_text();
  const std::string r = name_of_present();
  rollout(r, "Progressing", target());
  ASSERT_EQ(run(Verb::abort), 0) << err.str();
  for (const char* when : {"recorded", "applied"}) {
    EXPECT_EQ(run(Verb::status, r), 1) << when;
    EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default\n")) << when;
    EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout undo " + r + " --dry-run  # to go back\n"))
        << when;
    report(r, "Failed", "Aborted");
  }
}

// Without its name, the policy stands for it.
TEST_F(WayBack, APolicyWhoseRolloutWasAbortedSaysWhatItsNodesRunAndNamesTheUndo) {
  post_node("gpu-2", "True");
  FleetRecord kept = record_with_gpu_1("v1-00000000000000aa");
  MachineRecord gpu_2;
  gpu_2.config_map = k8s::Interned("gpu-operator/mps-config");
  gpu_2.key = k8s::Interned("any");
  gpu_2.revision = k8s::Interned(target());
  kept.machines.set(machine_id(get("/api/v1/nodes/gpu-2")["metadata"]["uid"].get<std::string>()), gpu_2);
  kept.verified = {{"gpu-operator/mps-config/any", "v1-00000000000000aa"}};
  kept.texts = {{"v1-00000000000000aa", "version: v1\n"}};
  record(print_head({kept}));
  const std::string r = name_of_present();
  rollout(r, "Failed", target(), "any", "version: v1\n", "default", "Aborted");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + r, R"({"spec":{"aborted":true}})");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"conditions":[{"type":"Progressing","status":"False","reason":"Aborted",
            "message":"the rollout was aborted","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: Aborted: the rollout was aborted\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n  1 node runs "));
  EXPECT_THAT(out.str(), HasSubstr("1 node runs v1-00000000000000aa"));
  EXPECT_THAT(out.str(), HasSubstr("1 node runs " + target()));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default\n"
                                   "  next: gpu-sharing-operator rollout undo " +
                                   r + " --dry-run  # to go back\n"));
}

// The retry is for all nodes of the policy, so also for one that somebody wants to keep.
TEST_F(WayBack, ARetryNamesTheNodeThatItCordonsAgainAfterSomebodyUncordonedIt) {
  post_node("gpu-2", "True");
  record(print_head({edit_behind_pods_of({"gpu-1", "gpu-2"})}));
  const std::string deferral =
      print_deferral({target(), sim.clock.now() + std::chrono::hours(1), Deferral::By::person, ""});
  merge("/api/v1/nodes/gpu-2",
        Json{{"metadata", {{"annotations", {{std::string(kDeferredAnnotation), deferral}}}}}}.dump());
  fail("gpu-1");
  sim.clock.run_for(std::chrono::seconds(1));
  (void)run(Verb::status);
  EXPECT_THAT(out.str(),
              HasSubstr("  next: gpu-sharing-operator rollout start default  # retries all failed nodes, once "
                        "the cause is fixed; it also cordons gpu-2 again, which was uncordoned\n"));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex(
                             "\n  node gpu-2: it was uncordoned during its drain, and the retry cordons it again "
                             "\\(was deferred until 20[^)]*Z\\)\n"));
}

// Where the operator's record cannot be read, the status of the policy says what waits, and is older than the abort.
TEST_F(WayBack, AnAbortedRolloutIsNotCalledOneThatHasNotStarted) {
  rollout("r", "Progressing", "v1-2");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"currentRollout":"r","conditions":[{"type":"Progressing","status":"False",
            "reason":"BudgetExhausted","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  ASSERT_EQ(run(Verb::abort), 0) << err.str();
  (void)run(Verb::abort);
  EXPECT_THAT(out.str() + err.str(), Not(HasSubstr("has not started yet")));
}

}  // namespace
}  // namespace gso::rollout_way_back_test
