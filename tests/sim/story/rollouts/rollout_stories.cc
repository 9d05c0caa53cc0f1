// The list of the rollout stories, in the order in which they are told.
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

const std::vector<ShortStory>& rollout_stories() {
  static const std::vector<ShortStory> kStories{
      {.name = "strategy-change",
       .title = "MPS to time-slicing and back: canary, soak, and waves within percent budgets",
       .budget = 2,
       .nodes = [](bool) { return two_models(6, 2); },
       .tell = strategy_change},
      {.name = "canary-fails",
       .title = "A canary that fails stops the rollout, a fix goes on, and what failed is not tried again",
       .budget = 2,
       .nodes = [](bool large) { return large ? two_models(6, 2) : two_models(3, 1); },
       .tell = canary_fails},
      {.name = "rollback",
       .title = "Failures after the canary reach maxFailures: a profile that is ours goes back by itself",
       .budget = 2,
       .nodes = [](bool) { return a100s(5); },
       .tell = rollback},
      {.name = "not-ready",
       .title = "Nodes that are not Ready are skipped and counted, and rolled when they are back",
       .budget = 2,
       .nodes = [](bool) { return a100s(5); },
       .tell = not_ready},
      {.name = "workloads",
       .title = "Pods in the way are waited for, or evicted once their PodDisruptionBudget allows it",
       .budget = 2,
       .nodes = [](bool) { return a100s(3); },
       .tell = workloads,
       .evicts = true},
      {.name = "window-closes",
       .title = "A maintenance window closes mid-way: nodes with a deleted pod finish, those that only wait are "
                "uncordoned, none starts until it opens again",
       .nodes = [](bool) { return a100s(6); },
       .tell = window_closes},
      {.name = "superseded",
       .title = "An edit supersedes another one mid-way, and an edit back is the fast undo",
       .nodes = [](bool) { return a100s(5); },
       .tell = superseded},
      {.name = "killed",
       .title = "The operator is killed again and again: no node is restarted twice",
       .nodes = [](bool) { return a100s(4); },
       .tell = killed},
      {.name = "old-drift",
       .title = "Drift from before the installation is reported and left alone, until somebody adopts it",
       .budget = 4,
       .nodes = [](bool large) { return a100s(large ? 40 : 6); },
       .tell = old_drift},
      {.name = "approval",
       .title = "Nothing moves before it is approved, while it is paused, or on a node that is held",
       .nodes = [](bool) { return a100s(4); },
       .tell = approval},
      {.name = "cluster-policy",
       .title = "A ClusterPolicy patch goes through our waves under OnDelete, and is followed under RollingUpdate",
       .nodes = [](bool) { return a100s(3); },
       .tell = cluster_policy_patched},
      {.name = "gitops",
       .title = "A ConfigMap replaced wholesale gets its key in use back at once; a policy that goes is reverted",
       .nodes = [](bool) { return a100s(3); },
       .tell = replaced_by_gitops},
      {.name = "eviction-annotations",
       .title = "Pods of kube-system and pods that carry an annotation against eviction stay, until they are gone or "
                "it is taken off",
       .nodes = [](bool) { return a100s(3); },
       .tell = eviction_annotations,
       .evicts = true},
      {.name = "stuck-pods",
       .title = "Pods that cannot see their profile are replaced, and not before there is one",
       .nodes = [](bool) { return a100s(3); },
       .tell = stuck_pods,
       .plugin_version = "v0.17.0"},
      {.name = "unclean-exits",
       .title = "MPS daemons that are killed are reported, and a node that is lost with its daemon keeps its slot",
       .nodes = [](bool) { return a100s(3); },
       .tell = unclean_exits},
      {.name = "daemonset-restart",
       .title = "DaemonSetRestart leaves the pace to the DaemonSets, and every node is verified",
       .nodes = [](bool) { return a100s(3); },
       .tell = daemonset_restart,
       .restarts_daemonsets = true},
      {.name = "labels-vanish",
       .title = "Labels that vanish for a minute with each restart change no budget, no group and no canary",
       .budget = 2,
       .nodes = [](bool large) { return large ? two_models(4, 2) : two_models(2, 2); },
       .tell = labels_vanish},
      {.name = "driver-upgrade",
       .title = "A node under a driver upgrade is left alone; its new pods have read the edit, and are not restarted",
       .budget = 2,
       .nodes = [](bool) { return a100s(3); },
       .tell = driver_upgraded},
      {.name = "mig-change",
       .title = "A node that the MIG manager cuts is left alone, and shows its new devices shared",
       .budget = 2,
       .nodes = [](bool) { return a100s(3); },
       .tell = mig_changed},
      {.name = "offered-twice",
       .title = "A node whose GPUs a DRA driver offers, too, is not restarted until that ends",
       .budget = 2,
       .nodes = [](bool) { return a100s(3); },
       .tell = offered_twice},
      {.name = "gpu-dies",
       .title = "A GPU that dies is reported, also after a reboot that counts one less, and restarts nobody",
       .budget = 2,
       .nodes = [](bool) { return alike("a100", 3, {a100(), a100(), a100(), a100()}); },
       .tell = gpu_dies},
      {.name = "shared-by-kai",
       .title = "Nodes whose GPUs KAI shares are not rolled to replicas, and one that KAI takes while it drains is "
                "uncordoned",
       .budget = 2,
       .nodes = [](bool) { return a100s(4); },
       .tell = shared_by_kai},
  };
  return kStories;
}

std::vector<NodeSpec> a100s(int count) {
  return alike("a100", count, {a100(), a100()});
}

std::vector<NodeSpec> two_models(int a100_nodes, int t4_nodes) {
  std::vector<NodeSpec> nodes = a100s(a100_nodes);
  for (NodeSpec& node : alike("t4", t4_nodes, {t4()})) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace gso::sim
