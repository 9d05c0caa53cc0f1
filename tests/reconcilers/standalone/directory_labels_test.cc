// Nodes say where their standalone MPS daemon is, and only while one is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/standalone/standalone_fleet.h"

namespace gso::test::directory_labels_test {
namespace {

using testing::HasSubstr;

constexpr const char* kLabel = "gpusharing.dev/mps-pipe-directory";

class DirectoryLabels : public StandaloneMps {
 protected:
  void SetUp() override { report = "pipeDirectory=/run/nvidia-mps driver=615.20 gpus=2\n"; }
  [[nodiscard]] std::string label(const std::string& node = "n01") const { return fleet->label_of(node, kLabel); }
  void begin_labelled(int nodes = 1) {
    begin(nodes);
    run(15s);
    ASSERT_NE(label(), "");
  }
  void change_pod(const std::string& node, const std::function<void(Pod&)>& change) {
    Pod pod = *pod_on(node);
    change(pod);
    fleet->world.operand_pods.apply(pod);
  }
  // How often the operator sets the label from now on, and its Events about labels.
  void count_writes() {
    fleet->on_plan = [this](const Plan& plan) {
      for (const PlannedAction& planned : plan.actions) {
        const auto* patch = std::get_if<PatchNode>(&planned.action);
        const auto* event = std::get_if<RecordEvent>(&planned.action);
        writes += patch != nullptr && (patch->set.contains(kLabel) || patch->remove.contains(kLabel)) ? 1 : 0;
        if (event != nullptr && event->why.code == kLabelContested) events.push_back(event->why.message);
      }
    };
  }
  // The daemon's node leaves the node selector, and the pod goes.
  void end_daemon(const std::string& node) {
    fleet->label(node, "team.example/mps", std::nullopt);
    end_pod(node);
  }
  int writes = 0;
  std::vector<std::string> events;
};

TEST_F(DirectoryLabels, NameTheDirectoryOfADaemonThatIsReady) {
  begin_labelled(2);
  EXPECT_EQ(label("n01"), "run.nvidia-mps");
  EXPECT_EQ(label("n02"), "run.nvidia-mps");
  EXPECT_TRUE(fleet->plan().actions.empty());
}

TEST_F(DirectoryLabels, AreNotSetBeforeTheDaemonIsReady) {
  broken = true;
  begin(1);
  run(5min);
  EXPECT_EQ(label(), "");
}

// A pod that watches the host ends its container when the host's daemon has moved: its message is newer than its
// check's.
TEST_F(DirectoryLabels, FollowADaemonOfTheHostWithinOnePod) {
  report = "pipeDirectory=/tmp/nvidia-mps\n";
  begin(1, "observe");
  run(15s);
  ASSERT_EQ(label(), "tmp.nvidia-mps");
  change_pod("n01", [](Pod& pod) {
    pod.containers.front().last_terminated =
        Rare(Termination{0, Interned("Completed"), Interned("pipeDirectory=/run/nvidia-mps\n")});
  });
  run(15s);
  EXPECT_EQ(label(), "run.nvidia-mps");
}

TEST_F(DirectoryLabels, StayWhileThePodRestartsOrIsReplaced) {
  begin_labelled();
  change_pod("n01", [](Pod& pod) { pod.ready = false; });
  run(30min);
  EXPECT_EQ(label(), "run.nvidia-mps") << "its container restarts";
  end_pod("n01");
  run(100s);
  EXPECT_EQ(label(), "run.nvidia-mps") << "the DaemonSet's controller makes another one";
  make_pod("n01");
  run(10min);
  EXPECT_EQ(label(), "run.nvidia-mps");
  change_pod("n01", [](Pod& pod) { pod.init_containers = {}; });
  run(10min);
  EXPECT_EQ(label(), "run.nvidia-mps") << "the kubelet has lost the init container, and with it what it reported";
}

TEST_F(DirectoryLabels, StayThroughTheReplacementOfTheDaemon) {
  begin_labelled();
  use({"n01"});
  new_template("new");
  run(60s);
  ASSERT_EQ(in_change(), 1);
  end_pod("n01");  // The new pod cannot be created for a while.
  run(10min);
  ASSERT_EQ(in_change(), 1);
  EXPECT_EQ(label(), "run.nvidia-mps");
}

TEST_F(DirectoryLabels, AreRemovedOnceNoDaemonHasBeenThereForTwoMinutes) {
  for (const bool all : {false, true}) {
    begin(1);
    run(15s);
    if (all) fleet->world.daemonsets.erase(kDaemons);
    end_daemon("n01");
    run(119s);
    EXPECT_EQ(label(), "run.nvidia-mps") << all;
    run(5s);
    EXPECT_EQ(label(), "") << all;
    EXPECT_TRUE(fleet->plan().actions.empty()) << all;
  }
}

TEST_F(DirectoryLabels, AreNotRemovedWhileTheViewOfThePodsHasGaps) {
  begin_labelled();
  fleet->settings.operator_namespace = "elsewhere";  // Nothing at all is planned while that has gaps.
  fleet->world.unsynced_namespaces.insert(kDaemons.ns);
  end_pod("n01");
  run(30min);
  EXPECT_EQ(label(), "run.nvidia-mps");
  fleet->world.unsynced_namespaces.clear();
  make_pod("n01");
  run(5min);
  EXPECT_EQ(label(), "run.nvidia-mps");
}

TEST_F(DirectoryLabels, AreNotWrittenWhereAPersonHoldsTheNodeOrLabelsAreOnlyVerified) {
  broken = true;
  begin(2);
  fleet->annotate("n01", kHoldAnnotation, "true");
  fleet->annotate("n02", kLabelModeAnnotation, "verify");
  for (const char* node : {"n01", "n02"}) change_pod(node, [](Pod& pod) { pod.ready = true; });
  run(5min);
  EXPECT_EQ(label("n01"), "");
  EXPECT_EQ(label("n02"), "");
  fleet->annotate("n01", kHoldAnnotation, std::nullopt);
  fleet->annotate("n02", kLabelModeAnnotation, std::nullopt);
  run(15s);
  EXPECT_EQ(label("n01"), "run.nvidia-mps");
  EXPECT_EQ(label("n02"), "run.nvidia-mps");
}

TEST_F(DirectoryLabels, AreSetAgainIfAnotherClientChangesThem) {
  begin_labelled();
  fleet->label("n01", kLabel, "tmp.nvidia-mps");
  run(9s);
  EXPECT_EQ(label(), "tmp.nvidia-mps");
  run(5s);
  EXPECT_EQ(label(), "run.nvidia-mps");
}

// By the rule for all labels: the operator sets it three times a day, says so once, and leaves it to the other client.
TEST_F(DirectoryLabels, AreLeftToAClientThatKeepsChangingThem) {
  crds = true;
  begin_labelled(2);
  count_writes();
  for (int i = 0; i < 30; ++i) {
    fleet->label("n01", kLabel, "tmp.nvidia-mps");
    run(15s);
  }
  EXPECT_EQ(writes, 3);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_NE(events.front().find(kLabel), std::string::npos) << events.front();
  EXPECT_THAT(finding(kLabelContested),
              HasSubstr("n01: another client keeps changing label gpusharing.dev/mps-pipe-directory"));
  EXPECT_NE(fleet->policy_status("default").find(R"("type":"LabelsContested")"), std::string::npos);
  fleet->restart_operator();
  run(2min);
  EXPECT_EQ(writes, 3) << "what the operator has seen is on the node";
  EXPECT_EQ(label("n02"), "run.nvidia-mps");
  fleet->advance(24h);
  run(15s);
  EXPECT_EQ(label("n01"), "run.nvidia-mps") << "it tries again";
  EXPECT_EQ(finding(kLabelContested), "");
}

TEST_F(DirectoryLabels, AreLeftToAClientThatTakesThemAwayWithTheAnnotation) {
  crds = true;
  begin_labelled();
  count_writes();
  for (int i = 0; i < 30; ++i) {
    fleet->label("n01", kLabel, std::nullopt);
    fleet->annotate("n01", kOwnedAnnotation, std::nullopt);
    run(15s);
  }
  EXPECT_EQ(writes, 2) << "beside the first one";
  EXPECT_EQ(events.size(), 1U);
}

TEST_F(DirectoryLabels, AreNoneOfAnotherClientIfTheDaemonItselfMoves) {
  begin_labelled();
  count_writes();
  for (int i = 0; i < 6; ++i) {
    report = i % 2 == 0 ? "pipeDirectory=/tmp/nvidia-mps driver=580.10 gpus=2\n"
                        : "pipeDirectory=/run/nvidia-mps driver=615.20 gpus=2\n";
    replace_pod("n01");
    run(15s);
    EXPECT_EQ(label(), i % 2 == 0 ? "tmp.nvidia-mps" : "run.nvidia-mps");
  }
  EXPECT_EQ(writes, 6);
  EXPECT_TRUE(events.empty());
}

// What another client has put there is not removed, neither with the daemon nor by `cleanup`.
TEST_F(DirectoryLabels, OfAnotherClientStayWithoutADaemonAndAreReported) {
  begin_labelled(3);
  fleet->annotate("n02", kHoldAnnotation, "true");
  fleet->label("n02", kLabel, "somewhere.else");
  for (const char* node : {"n01", "n02", "n03"}) end_daemon(node);
  run(150s);
  EXPECT_EQ(label("n01"), "");
  EXPECT_EQ(fleet->annotation_of("n01", kOwnedAnnotation), "");
  fleet->annotate("n02", kHoldAnnotation, std::nullopt);
  fleet->label("n03", kLabel, "tmp.nvidia-mps");
  count_writes();
  run(5min);
  EXPECT_EQ(label("n02"), "somewhere.else");
  EXPECT_EQ(label("n03"), "tmp.nvidia-mps");
  EXPECT_EQ(writes, 0);
  EXPECT_EQ(fleet->annotation_of("n02", kOwnedAnnotation), "") << "the operator does not own it any more";
  EXPECT_THAT(finding("MPSDirectoryOfOthers"), HasSubstr("n02: another client has set label"));
}

// Both patches have the whole annotation of owned labels.
TEST_F(DirectoryLabels, AreNotWrittenTogetherWithSharingLabels) {
  without_gfd = true;
  begin(1, "run", "ts-4");
  fleet->on_plan = [](const Plan& plan) {
    int parts = 0;
    for (const PlannedAction& planned : plan.actions) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      parts += patch != nullptr && patch->set_annotations.contains(std::string(kOwnedAnnotation)) ? 1 : 0;
    }
    EXPECT_LE(parts, 1);
  };
  run(15s);
  fleet->label("n01", std::string(kGpuReplicas), "7");
  fleet->label("n01", kLabel, "tmp.nvidia-mps");
  run(10s);
  fleet->label("n01", std::string(kGpuReplicas), "7");  // In the pass in which the directory's turn comes.
  run(10s);
  EXPECT_EQ(label(), "run.nvidia-mps");
  EXPECT_EQ(fleet->label_of("n01", kGpuReplicas), "4");
  const std::string owned = fleet->annotation_of("n01", kOwnedAnnotation);
  EXPECT_NE(owned.find(kGpuReplicas), std::string::npos) << owned;
  EXPECT_NE(owned.find(kLabel), std::string::npos) << owned;
}

TEST_F(DirectoryLabels, NameNoDirectoryThatCannotBeExpressed) {
  begin_labelled();
  report = "pipeDirectory=/var/lib/mps-1.2 driver=580.10 gpus=2\n";
  replace_pod("n01");
  run(15s);
  EXPECT_EQ(label(), "") << "it would name a directory without a daemon";
  EXPECT_THAT(finding("MPSDirectoryUnlabelled"),
              HasSubstr("n01: the node's standalone MPS daemon is in /var/lib/mps-1.2"));
}

// A pod that is not Ready says why; what its check said when it succeeded is no reason.
TEST_F(DirectoryLabels, TheReportIsNoReasonWhyADaemonDoesNotRun) {
  begin(1);
  change_pod("n01", [](Pod& pod) { pod.ready = false; });
  run(15s);
  EXPECT_EQ(finding(kStandaloneMpsRefused), "");
  change_pod("n01", [](Pod& pod) {
    ContainerStatus& container = pod.containers.front();
    container.ready = false;
    container.waiting_reason = Interned("CrashLoopBackOff");
    container.last_terminated =
        Rare(Termination{0, Interned("Completed"), Interned("pipeDirectory=/run/nvidia-mps\n")});
  });
  run(15s);
  EXPECT_THAT(finding(kStandaloneMpsRefused), HasSubstr("is not Ready"));
}

}  // namespace
}  // namespace gso::test::directory_labels_test
