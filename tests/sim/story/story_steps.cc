// The steps of the story, in order. Each says what a user does, then what must hold.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/labels.h"
#include "tests/sim/story/story.h"

namespace gso::sim {

using boost::asio::awaitable;
using nlohmann::json;

namespace {

const k8s::Gvr kNodes{"", "v1", "nodes"};
const k8s::Gvr kNamespaces{"", "v1", "namespaces"};
const k8s::Gvr kConfigMaps{"", "v1", "configmaps"};
const k8s::Gvr kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const k8s::Gvr kClusterPolicies{"nvidia.com", "v1", "clusterpolicies"};
const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};

json cluster_policy(const std::string& version, const std::string& key) {
  const json enabled{{"enabled", true}};
  return {{"apiVersion", "nvidia.com/v1"},
          {"kind", "ClusterPolicy"},
          {"metadata", {{"name", "cluster-policy"}}},
          {"spec",
           {{"operator", {{"defaultRuntime", "containerd"}}},
            {"daemonsets", json::object()},
            {"driver", enabled},
            {"toolkit", enabled},
            {"dcgm", enabled},
            {"dcgmExporter", enabled},
            {"nodeStatusExporter", {{"enabled", false}}},
            {"gfd", {{"enabled", true}, {"version", version}}},
            {"devicePlugin", {{"enabled", true}, {"version", version}, {"config", {{"name", "mps-config"}, {"default", key}}}}}}}};
}

json sharing_policy(const std::string& name, const std::string& node, const std::string& key) {
  return {{"apiVersion", kApiVersion},
          {"kind", "SharingPolicy"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"nodeSelector", {{"matchLabels", {{"kubernetes.io/hostname", node}}}}},
            {"priority", 10},
            {"profile", {{"configMapKey", key}}}}}};
}

// g++ 12 cannot keep an initializer list across a suspension point, so lists are made in a function.
std::vector<std::string> list(auto... texts) { return {std::string(texts)...}; }

bool before(const std::string& version, const std::string& other) { return version < other; }  // v0.17.x < v0.18.2

}  // namespace

awaitable<bool> Story::prepare() {
  narrator_->step(fmt::format("A running fleet: {} nodes, device plugin {}, the default profile is MPS with 4 replicas",
                              settings_.nodes.size(), settings_.plugin_version));
  for (const std::string& crd : settings_.crds) {
    const std::string name = json::parse(crd)["metadata"]["name"];
    const bool applied = co_await apply(kCrds, {"", name}, crd);
    if (!applied) co_return false;
  }
  const std::vector<std::string> namespaces = list(settings_.ns, settings_.operator_ns);
  for (const std::string& ns : namespaces) {
    const json body{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
    const bool applied = co_await apply(kNamespaces, {"", ns}, body.dump());
    if (!applied) co_return false;
  }
  const json config{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "mps-config"}, {"namespace", settings_.ns}}},
                    {"data",
                     {{"any", mps_profile(4)},
                      {"mps-2", mps_profile(2)},
                      {"ts-4", time_slicing_profile(4)},
                      {"ts-10", time_slicing_profile(10)},
                      {"ts-mig", time_slicing_profile(2, true)}}}};
  const auto created = co_await client_->create(kConfigMaps, settings_.ns, config.dump());
  if (!created) co_return check(false, "create mps-config", created.error().message);
  // A CRD is served a moment after it was accepted.
  const std::string policy = cluster_policy(settings_.plugin_version, "any").dump();
  k8s::Result<std::string> made = k8s::fail(k8s::Reason::not_found, "not tried");
  for (int attempt = 0; attempt < 100 && !made && made.error().reason == k8s::Reason::not_found; ++attempt) {
    if (attempt > 0) co_await clock_->sleep_for(std::chrono::milliseconds(100));
    made = co_await client_->create(kClusterPolicies, "", policy);
  }
  if (!made) co_return check(false, "create ClusterPolicy cluster-policy", made.error().message);

  const StoryNode* mig = mig_node();
  auto fleet_is_up = [this, mig] {
    const bool shared = std::ranges::all_of(governed(), [&](const StoryNode* node) {
      return view_.allocatable(node->name, "nvidia.com/gpu") == node->gpus * 4 &&
             (node->unlabelled || shows(*node, Shown{.replicas = 4}));
    });
    return shared && (mig == nullptr || shows(*mig, Shown{.replicas = 2, .strategy = "time-slicing"}));
  };
  auto seen = [this, mig] {
    return describe_missing(Shown{.replicas = 4}) + (mig == nullptr ? "" : "\n    " + describe(*mig)) + view_.last_error();
  };
  const bool up = co_await expect("the fleet runs: GPUs x 4 by MPS, the MIG node on its own time-slicing key",
                                  fleet_is_up, seen);
  co_return up;
}

awaitable<bool> Story::install() {
  narrator_->step("1. The operator is installed, and disturbs nothing");
  // The sidecars of fresh pods may still flip: wait until the fleet is quiet before taking its picture.
  PodHistory mark = view_.history();
  co_await clock_->sleep_for(settings_.quiet);
  mark = view_.history();
  const auto started = co_await control_->start();
  if (!started) co_return check(false, "start the operator", started.error().message);

  const auto bare = std::ranges::find_if(settings_.nodes, &StoryNode::unlabelled);
  if (bare != settings_.nodes.end()) {
    const bool labelled = co_await expect(
        fmt::format("{}, which nobody labels, gets its sharing labels from us", bare->name),
        [this, bare] { return shows(*bare, Shown{.replicas = 4}); }, [this, bare] { return describe(*bare); });
    if (!labelled) co_return false;
  }
  auto status_is_there = [this] {
    const json status = json::parse(policy_status("default"), nullptr, false);
    return status.is_object() &&
           status.value("/nodes/upToDate"_json_pointer, 0) >= static_cast<int>(governed().size());
  };
  const bool adopted = co_await expect("SharingPolicy default exists and counts every eligible node as up to date",
                                       status_is_there, [this] { return policy_status("default"); });
  if (!adopted) co_return false;
  const bool shown = co_await expect_shown("every eligible node shows replicas=4, -SHARED, mps, GPUs x 4", {.replicas = 4});
  if (!shown) co_return false;
  const bool quiet = co_await expect_no_restart("nothing was restarted", mark);
  if (!quiet) co_return false;
  const json tuned{{"spec",
                    {{"rollout",
                      {{"canary", {{"soak", settings_.soak}}}, {"verifyTimeout", settings_.verify_timeout}}}}}};
  const bool patched = co_await patch(kPolicies, {"", "default"}, tuned.dump());
  co_return patched;
}

awaitable<bool> Story::mig_is_refused() {
  const StoryNode* mig = mig_node();
  if (mig == nullptr) co_return true;
  const std::string label_before = view_.label(mig->name, kConfigLabel);
  narrator_->step(fmt::format("   A policy that would put {} on MPS is refused", mig->name));
  json policy = sharing_policy("mig-to-mps", mig->name, "any");
  policy["spec"]["takeover"] = true;
  const bool applied = co_await apply(kPolicies, {"", "mig-to-mps"}, policy.dump());
  if (!applied) co_return false;
  auto blocked = [this] { return policy_status("mig-to-mps").find("MIGEnabled") != std::string::npos; };
  const bool refused = co_await expect("the policy says Blocked(MIGEnabled)", blocked,
                                       [this] { return policy_status("mig-to-mps"); });
  if (!refused) co_return false;
  const bool kept = check(view_.label(mig->name, kConfigLabel) == label_before, "its label is not written",
                          "it is now " + view_.label(mig->name, kConfigLabel));
  const auto removed = co_await client_->remove(kPolicies, {"", "mig-to-mps"});
  if (!removed) co_return check(false, "delete the policy", removed.error().message);
  const bool released = co_await expect(
      "without the policy the node is as before", [this, mig] { return settled(*mig); },
      [this, mig] { return describe(*mig); });
  co_return kept && released;
}

awaitable<bool> Story::edit_replicas() {
  narrator_->step("2. kubectl edit configmap mps-config: 8 replicas");
  const PodHistory mark = view_.history();
  view_.reset_most_out_of_service();
  const bool edited = co_await edit_config("any", mps_profile(8));
  if (!edited) co_return false;
  const bool shown = co_await expect_shown("canary, then waves: every eligible node shows GPUs x 8", {.replicas = 8});
  if (!shown) co_return false;
  std::string why;
  const bool once = restarted_once(mark, list("plugin", "gfd", "mps"), why);
  bool held = check(once, "plugin, GFD and MPS were restarted once on each node, by nobody's hand", why);
  held &= check(view_.most_out_of_service() <= budget(),
                fmt::format("never more than {} nodes were out of service", budget()),
                fmt::format("{} were", view_.most_out_of_service()));
  const StoryNode* mig = mig_node();
  if (mig != nullptr) {
    held &= check(view_.new_pods(mark, mig->name, "plugin") == 0, mig->name + ", on another key, was left alone");
  }
  auto completed = [this] {
    return std::ranges::any_of(view_.rollouts().all(), [](const auto& entry) { return entry.second->phase == "Completed"; });
  };
  const bool recorded = co_await expect("a SharingRollout tells of it, phase Completed", completed, [this] {
    std::string phases;
    for (const auto& [key, rollout] : view_.rollouts().all()) phases += key.name + "=" + rollout->phase + " ";
    return phases.empty() ? std::string("there is none") : phases;
  });
  co_return held && recorded;
}

awaitable<bool> Story::edit_without_label() {
  narrator_->step("   An edit of failRequestsGreaterThanOne, which no label shows, is rolled too");
  const PodHistory mark = view_.history();
  const bool edited = co_await edit_config("any", mps_profile(8, false, false));
  if (!edited) co_return false;
  std::string why;
  auto all_new = [this, &mark, &why] {
    return restarted_once(mark, {"plugin"}, why) &&
           std::ranges::all_of(governed(), [this](const StoryNode* node) { return settled(*node); });
  };
  const bool rolled = co_await expect("the plugin was restarted once on each node", all_new, [&why] { return why; });
  if (!rolled) co_return false;
  const bool mps_untouched = std::ranges::all_of(governed(), [&](const StoryNode* node) {
    return view_.new_pods(mark, node->name, "mps") == 0;
  });
  const bool shown = co_await expect_shown("every node serves GPUs x 8 again", {.replicas = 8});
  co_return check(mps_untouched, "the MPS daemons, which this does not concern, kept running") && shown;
}

awaitable<bool> Story::rename() {
  narrator_->step("3. renameByDefault: true");
  const bool edited = co_await edit_config("any", mps_profile(8, true));
  if (!edited) co_return false;
  const bool shown = co_await expect_shown("nvidia.com/gpu.shared = GPUs x 8, nvidia.com/gpu = 0, product without suffix",
                                           {.replicas = 8, .renamed = true});
  co_return shown;
}

awaitable<bool> Story::broken_edit() {
  narrator_->step("4. A broken edit: replicas: 1");
  const PodHistory mark = view_.history();
  const bool edited = co_await edit_config("any", mps_profile(1));
  if (!edited) co_return false;
  const bool told = co_await expect_event("it is refused in an Event with line and reason", "ConfigInvalid",
                                          list("line 6", "replicas"));
  if (!told) co_return false;
  auto invalid = [this] {
    const json status = json::parse(policy_status("default"), nullptr, false);
    if (!status.is_object() || !status.contains("conditions")) return false;
    return std::ranges::any_of(status["conditions"], [](const json& condition) {
      return condition.value("type", "") == "ConfigValid" && condition.value("status", "") == "False" &&
             condition.value("message", "").find("replicas") != std::string::npos;
    });
  };
  const bool condition = co_await expect("and in the policy's condition ConfigValid", invalid,
                                         [this] { return policy_status("default"); });
  if (!condition) co_return false;
  const bool quiet = co_await expect_no_restart("nothing is restarted", mark);
  if (!quiet) co_return false;
  const bool fixed = co_await edit_config("any", mps_profile(6));
  if (!fixed) co_return false;
  const bool shown = co_await expect_shown("fixing it resumes: every eligible node shows GPUs x 6", {.replicas = 6});
  co_return shown;
}

awaitable<bool> Story::label_one_node() {
  const StoryNode* chosen = governed().front();
  narrator_->step(fmt::format("5. kubectl label node {} nvidia.com/device-plugin.config=ts-4", chosen->name));
  const PodHistory mark = view_.history();
  own_way_ = chosen->name;
  const json body{{"metadata", {{"labels", {{kConfigLabel, "ts-4"}}}}}};
  const bool labelled = co_await patch(kNodes, {"", chosen->name}, body.dump());
  if (!labelled) co_return false;
  const Shown wanted{.replicas = 4, .strategy = "time-slicing"};
  const bool moved = co_await expect(
      chosen->name + " moves to time-slicing", [this, chosen, wanted] { return shows(*chosen, wanted) && settled(*chosen); },
      [this, chosen] { return describe(*chosen); });
  if (!moved) co_return false;
  const bool alone = std::ranges::all_of(governed(), [&](const StoryNode* node) {
    return view_.new_pods(mark, node->name, "plugin") == 0;
  });
  co_return check(alone, "it moves alone");
}

awaitable<bool> Story::mps_by_label() {
  const StoryNode* chosen = governed().front();
  const bool supported = before(settings_.plugin_version, "v0.18.2");
  narrator_->step(fmt::format("   A policy selects an MPS key by label for {} (plugin {})", chosen->name,
                              settings_.plugin_version));
  const bool applied = co_await apply(kPolicies, {"", "mps-by-label"},
                                      sharing_policy("mps-by-label", chosen->name, "mps-2").dump());
  if (!applied) co_return false;
  if (supported) {
    const bool moved = co_await expect(
        "the plugin supports it: the node moves to MPS with 2 replicas",
        [this, chosen] { return shows(*chosen, {.replicas = 2}) && settled(*chosen); },
        [this, chosen] { return describe(*chosen) + " " + policy_status("mps-by-label"); });
    if (!moved) co_return false;
  } else {
    const bool blocked = co_await expect(
        "Blocked(MPSByLabelUnsupported)",
        [this] { return policy_status("mps-by-label").find("MPSByLabelUnsupported") != std::string::npos; },
        [this] { return policy_status("mps-by-label"); });
    if (!blocked) co_return false;
    const bool kept = check(view_.label(chosen->name, kConfigLabel).empty(), "its label is not written",
                            "it is " + view_.label(chosen->name, kConfigLabel));
    if (!kept) co_return false;
  }
  const auto removed = co_await client_->remove(kPolicies, {"", "mps-by-label"});
  if (!removed) co_return check(false, "delete the policy", removed.error().message);
  if (supported) {
    // Retain: the label stays when the policy goes; the user takes it away.
    const json body{{"metadata", {{"labels", {{kConfigLabel, nullptr}}}}}};
    const bool unlabelled = co_await patch(kNodes, {"", chosen->name}, body.dump());
    if (!unlabelled) co_return false;
  }
  const bool back = co_await expect_shown("without the policy and the label the node follows the default", {.replicas = 6});
  co_return back;
}

awaitable<bool> Story::patch_cluster_policy() {
  narrator_->step("   kubectl patch clusterpolicy, with a typo: default: ts-ten");
  const auto patch_default = [](const std::string& key) {
    return json{{"spec", {{"devicePlugin", {{"config", {{"default", key}}}}}}}}.dump();
  };
  const bool typo = co_await patch(kClusterPolicies, {"", "cluster-policy"}, patch_default("ts-ten"));
  if (!typo) co_return false;
  const bool named = co_await expect_event("the nodes that this will break are named", "NodesWouldBreak",
                                           list("ts-ten", governed().back()->name));
  if (!named) co_return false;
  narrator_->step("   kubectl patch clusterpolicy: default: ts-10");
  const bool right = co_await patch(kClusterPolicies, {"", "cluster-policy"}, patch_default("ts-10"));
  if (!right) co_return false;
  const bool shown = co_await expect_shown("the GPU Operator's roll is followed: GPUs x 10 by time-slicing",
                                           {.replicas = 10, .strategy = "time-slicing"});
  co_return shown;
}

awaitable<bool> Story::kill_in_the_middle() {
  narrator_->step("6. The operator is killed in the middle of a rollout, and started again");
  const PodHistory mark = view_.history();
  const bool edited = co_await edit_config("ts-10", time_slicing_profile(12));
  if (!edited) co_return false;
  auto in_the_middle = [this, &mark] {
    const auto nodes = governed();
    const auto moved = std::ranges::count_if(nodes, [&](const StoryNode* node) {
      return view_.new_pods(mark, node->name, "plugin") > 0;
    });
    const bool updating = std::ranges::any_of(nodes, [this](const StoryNode* node) {
      return view_.label(node->name, kStateLabel) == kStateUpdating;
    });
    return moved >= 2 && updating;
  };
  const bool reached = co_await expect("two nodes have moved and one is under way", in_the_middle,
                                       [this] { return describe_missing({.replicas = 12, .strategy = "time-slicing"}); });
  if (!reached) co_return false;
  co_await control_->kill();
  narrator_->note("kill -9");
  co_await clock_->sleep_for(settings_.quiet);
  const auto started = co_await control_->start();
  if (!started) co_return check(false, "start the operator again", started.error().message);
  const bool shown = co_await expect_shown("it goes on: every eligible node shows GPUs x 12",
                                           {.replicas = 12, .strategy = "time-slicing"});
  if (!shown) co_return false;
  std::string why;
  const bool once = restarted_once(mark, list("plugin", "gfd"), why);
  co_return check(once, "no node was restarted twice", why);
}

}  // namespace gso::sim
