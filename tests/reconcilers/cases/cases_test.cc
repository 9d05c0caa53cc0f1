// Cases: each <name>.yaml beside this file is a fleet, the events on it, and what its name claims of what happened. One
// without `expect:` fails with all that happened, one line for each happening.
//
//   fleet: {plugin: v0.20.0, default: any, profiles: {any: mps-4}, nodes: [{name: n1, gpus: 2}, {count: 8, prefix: a}]}
//   settings: {settle: 10s, cluster: 50%, statusLag: 12s, adopt: true, rollouts: Observe}
//   guards: true               # prints the marks for autoscalers, too
//   do:
//   - baseline                 # plans and applies until the fleet is quiet; prints nothing
//   - edit: {any: mps-8}       # what people and the cluster do: verbs()
//   - policy: {metadata: {name: p}, spec: {…}}  # kubectl apply of a SharingPolicy
//   - change: {n1: {guards: [karpenter]}}  # writes the annotations of a change as the operator would, or the remains
//   - advance: 10s
//   - plan                     # prints the plan with its findings, applies nothing
//   - tick                     # prints the plan, applies it, one second passes; {tick: 3}: three times
//   - quick-tick: 12           # the same, a tenth of a second for each
//   - settle                   # the same until quiet; {settle: never}: a pod crash-loops, or is waited for, to the end
//   - rollouts                 # prints phase, start and switches of every SharingRollout; rollout-words: its counts
//                              and conditions; rollout-nodes: its nodes
//   - status: default          # prints the status of a policy
//   expect:                    # what is printed, in this order; each a part of it
//   - "a01: Updating"
//   - never: "a02: Updating"   # not between the texts before and after it
//   - quiet
//
// What happened is printed by action_lines(). Revisions and names with a hash are numbered as they appear.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <tuple>
#include <type_traits>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/fleet_model/same_plan_checks.h"
#include "tests/reconcilers/source_files.h"

namespace gso::test::cases_test {
namespace {

using Json = nlohmann::json;

std::filesystem::path cases_dir() {
  return testing::source_dir() / "tests/reconcilers/cases";
}

using Texts = std::map<std::string, std::string>;

NodeSpec node_spec(const Json& json) {
  NodeSpec out;
  out.name = json.value("name", "");
  out.gpus = json.value("gpus", 2);
  out.product = json.value("product", out.product);
  out.labels = json.value("labels", Texts());
  out.annotations = json.value("annotations", Texts());
  out.gfd = json.value("gfd", true);
  out.mig = json.value("mig", false);
  out.ready = json.value("ready", true);
  out.cordoned = json.value("cordoned", false);
  return out;
}

FleetSpec fleet_spec(const Json& json) {
  FleetSpec out;
  out.plugin = json.value("plugin", out.plugin);
  out.default_key = json.value("default", out.default_key);
  out.fallback = json.value("fallback", out.fallback);
  out.profiles = json.value("profiles", out.profiles);
  out.on_delete = json.value("onDelete", false);
  out.crds = json.value("crds", true);
  out.immutable = json.value("immutable", false);
  out.api_behind = *k8s::parse_go_duration(json.value("apiBehind", "0s"));
  out.mig_strategy = json.value("migStrategy", "");
  for (const Json& node : json.at("nodes")) {
    for (int i = 1; i <= node.value("count", 1); ++i) {
      NodeSpec& made = out.nodes.emplace_back(node_spec(node));
      if (node.contains("count")) made.name = fmt::format("{}{:02}", node.value("prefix", "n"), i);
    }
  }
  return out;
}

void set_rollouts(FleetModel& fleet, const std::string& mode) {
  if (mode == "Observe") fleet.settings.rollouts = PolicyMode::observe;
  if (mode == "Approve") fleet.settings.rollouts = PolicyMode::approve;
}

void set_up(PlannerSettings& settings, const Json& given) {
  if (given.contains("settle")) settings.settle = *k8s::parse_go_duration(given["settle"].get<std::string>());
  settings.cluster_max_unavailable = *IntOrPercent::parse(given.value("cluster", "100%"));
  settings.status_lag = *k8s::parse_go_duration(given.value("statusLag", "0s"));
  settings.projection = *k8s::parse_go_duration(given.value("projection", "3s"));
  for (const Json& ns : given.value("removeRejectedPods", Json::array())) settings.remove_rejected_pods.insert(ns);
  settings.adopt_drift = given.value("adopt", false);
  settings.mps_signal_fixed = given.value("mpsSignalFixed", false);
  settings.rollout.canary_soak = std::chrono::seconds(5);
}

// --- What happens to the fleet.

using Verb = std::function<void(FleetModel&, const Json&)>;

template <class T>
auto value_of(const Json& json) {
  using Value = std::decay_t<T>;
  if constexpr (std::is_same_v<Value, std::optional<std::string>>)
    return json.is_null() ? Value() : Value(json.get<std::string>());
  else if constexpr (std::is_convertible_v<std::string, Value>)
    return json.get<std::string>();
  else
    return json.get<Value>();
}

// Of two arguments {first: second, …}, of three {first: {second: third, …}, …}.
template <class... Args>
Verb call(void (FleetModel::*act)(Args...)) {
  return [act](FleetModel& fleet, const Json& argument) {
    if constexpr (sizeof...(Args) == 0) {
      (fleet.*act)();
    } else {
      using Last = std::tuple_element_t<sizeof...(Args) - 1, std::tuple<Args...>>;
      if constexpr (sizeof...(Args) == 1) (fleet.*act)(value_of<Last>(argument));
      for (const auto& [key, value] : argument.items()) {
        if constexpr (sizeof...(Args) == 2) (fleet.*act)(key, value_of<Last>(value));
        if constexpr (sizeof...(Args) == 3)
          for (const auto& [name, text] : value.items()) (fleet.*act)(key, name, value_of<Last>(text));
      }
    }
  };
}

// {node: {…}, …}
Verb per_node(void (*act)(FleetModel&, const std::string& node, const Json&)) {
  return [act](FleetModel& fleet, const Json& argument) {
    for (const auto& [node, what] : argument.items()) act(fleet, node, what);
  };
}

void write_change_of(FleetModel& fleet, const std::string& node, const Json& change) {
  ChangeWords words;
  words.to = change.value("to", "");
  for (const Json& guard : change.value("guards", Json::array())) words.guards.insert(guard.get<std::string>());
  for (const auto& [key, value] : write_change(words)) fleet.annotate(node, key, value);
}

void use(FleetModel& fleet, const std::string& node, const Json& pod) {
  const Texts annotations = pod.value("annotations", Texts());
  if (pod.contains("job")) return fleet.use_by_job(node, pod.at("pod"), pod.at("job"), annotations);
  fleet.use(node, pod.value("pod", "job"), pod.value("resource", "nvidia.com/gpu"), pod.value("count", 1), annotations);
}

void apply_policy(FleetModel& fleet, const Json& policy) {
  Json object = policy;
  object["apiVersion"] = kApiVersion;
  object["kind"] = "SharingPolicy";
  fleet.policy(object.dump());
}

void turn_switches(FleetModel& fleet, const Json& switches) {
  const auto all = fleet.world.rollouts.all();
  for (const auto& [name, rollout] : all)
    for (const auto& [field, value] : switches.items()) fleet.rollout_switch(name.name, field, value);
}

const std::map<std::string, Verb>& verbs() {
  using F = FleetModel;
  static const std::map<std::string, Verb> all = {
      {"add-node", [](F& fleet, const Json& node) { fleet.add_node(node_spec(node)); }},
      {"advance", [](F& fleet, const Json& by) { fleet.advance(*k8s::parse_go_duration(by.get<std::string>())); }},
      {"ail", per_node([](F& fleet, const std::string& node, const Json& ill) {
         fleet.ail(node, ill.at("component"), ill.at("how"), ill.value("pods", 1));
       })},
      {"annotate", call(&F::annotate)},
      {"annotate-configmap", call(&F::annotate_config_map)},
      {"annotate-state", call(&F::annotate_state)},
      {"announce", call(&F::announce_default)},
      {"break-device", call(&F::break_device)},
      {"change", per_node(write_change_of)},
      {"cordon", call(&F::cordon)},
      {"crash", call(&F::crash_pods)},
      {"crds", call(&F::serve_crds)},  // false: the CRDs are deleted, with all their objects.
      {"daemonsets", call(&F::set_daemonsets_there)},
      {"delete-pod", call(&F::delete_pod_of)},
      {"delete-rollouts", call(&F::delete_rollouts)},
      {"device-class", call(&F::device_class)},
      {"dra-slice", call(&F::offer_by_dra)},
      {"drop-configmap", call(&F::drop_config_map)},
      {"edit", call(&F::edit)},
      {"forbid", call(&F::forbid)},
      {"forbid-clusterpolicies", call(&F::forbid_clusterpolicies)},
      {"forget-rollouts", call(&F::forget_finished_rollouts)},  // Deletes the finished ones.
      {"generate-configmap",
       [](F& fleet, const Json& made) { fleet.generate_config_map(made.at("name"), made.at("profiles")); }},
      {"gpu-cluster", call(&F::gpu_cluster)},
      {"kill-daemons", call(&F::kill_daemons)},
      {"label", call(&F::label)},
      {"lose-rollout-status", call(&F::lose_rollout_status)},  // Of every SharingRollout.
      {"policy", apply_policy},
      {"protect", call(&F::protect)},
      {"ready", call(&F::set_ready)},
      {"reboot", call(&F::reboot)},
      {"reboot-with-gpus", call(&F::reboot_with_gpus)},
      {"record", call(&F::write_record)},  // A person wrote into the operator's state.
      {"refuse-writes", [](F& fleet, const Json& nodes) { fleet.refused_writes = nodes.get<Texts>(); }},
      {"reject", per_node([](F& fleet, const std::string& node, const Json& pod) {
         fleet.reject(node, pod.at("pod"), pod.value("namespace", "jobs"));
       })},
      {"release", call(&F::release)},
      {"remove-key", call(&F::remove_key)},
      {"remove-node", call(&F::remove_node)},
      {"remove-policy", call(&F::remove_policy)},
      {"replace-configmap", call(&F::replace_config_map)},
      {"restart", call(&F::restart_operator)},
      {"roll", call(&F::roll_templates)},
      {"roll-back", call(&F::roll_templates_back)},
      {"rollout", turn_switches},
      {"set-rollouts",  // Another configuration: the operator restarts.
       [](F& fleet, const Json& mode) {
         set_rollouts(fleet, mode);
         fleet.restart_operator();
       }},
      {"stuck", call(&F::stick_sidecars)},
      {"undo", call(&F::undo_newest_rollout)},  // Of the policy.
      {"use", per_node(use)},
  };
  return all;
}

// --- What is printed.

// Revisions and names with a hash are numbered in the order of appearance. The serial numbers of pods are left out, and
// what else only identifies.
std::string with_stable_names(std::string text) {
  static const std::regex hashes("v1-[0-9a-f]{16}|\\b(?!\\d{10}\\b)[0-9a-f]{10}(?:[0-9a-f]{6})?\\b");
  std::map<std::string, std::string> revisions, names;
  std::string out;
  for (std::smatch found; std::regex_search(text, found, hashes); text = found.suffix()) {
    auto& known = found.str().starts_with("v1-") ? revisions : names;
    std::string& name = known[found.str()];
    if (name.empty()) name = (&known == &revisions ? "r" : "") + std::to_string(known.size());
    out += found.prefix().str() + name;
  }
  out = std::regex_replace(out + text, std::regex("\\b(plugin|gfd|mps)-([a-z]+\\d*)-\\d+\\b"), "$1-$2");
  out = std::regex_replace(out, std::regex(" uid=\\S+| resourceVersion=\\d+|\\bgpu-operator/"), "");
  return std::regex_replace(out, std::regex("2026-03-01T(\\d\\d:\\d\\d:\\d\\d)Z"), "$1");
}

// Nodes are many: an Event of a node is for what a person must do, or has done, on that node. Everything else is an
// Event of a policy or of a SharingRollout.
bool is_event_of_nodes(const RecordEvent& event) {
  const std::set<std::pair<std::string_view, std::string_view>> allowed = {
      {"Verify", "VerificationFailed"},  // It keeps its cordon.
      {"Verify", "LoadedUngated"},       // Somebody else has restarted its pods; of six nodes and more, one Event.
      {"Restart", "MPSUncleanExit"},     // Its GPUs might need a person.
      {"Abandon", "Abandoned"},          // The change ends, because no plugin serves the node any more.
      {"Abandon", "PartitionedByNos"},   // The same, because nos does.
      {"Drain", "Uncordoned"},           // A person has uncordoned it, and it is deferred.
  };
  // An obstacle of this node alone, whatever its reason, or one of these.
  return event.verb == "Block" || allowed.contains({event.verb, event.why.code});
}

class Script {
 public:
  explicit Script(const Json& spec) : fleet_(fleet_spec(spec.at("fleet"))), guards_(spec.value("guards", false)) {
    const Json settings = spec.value("settings", Json::object());
    set_up(fleet_.settings, settings);
    set_rollouts(fleet_, settings.value("rollouts", ""));
  }

  std::string run(const Json& steps) {
    for (const Json& step : steps) {
      if (step.is_string())
        perform(step.get<std::string>(), nullptr);
      else
        for (const auto& [verb, argument] : step.items()) perform(verb, argument);
    }
    return with_stable_names(std::move(out_));
  }

 private:
  void perform(const std::string& verb, const Json& argument) {
    if (verb == "baseline") {
      fleet_.on_plan = nullptr;
      ASSERT_TRUE(fleet_.settle()) << "the fleet did not come to rest";
      // During this time the second of the baseline passes, so that later edits are newer.
      fleet_.advance(std::chrono::seconds(5));
    } else if (verb == "plan") {
      const Plan plan = fleet_.plan();
      check_same_plan(fleet_);
      show_actions(plan, "plan: ");
      show_rest(plan);
    } else if (verb == "quick-tick") {
      for (int i = 0; i < argument.get<int>(); ++i) {
        const Plan plan = fleet_.plan();
        show_actions(plan, "");
        fleet_.apply(plan);
        fleet_.advance(std::chrono::milliseconds(100));
      }
    } else if (verb == "tick" || verb == "settle") {
      fleet_.on_plan = [this](const Plan& plan) {
        check_same_plan(fleet_);
        show_actions(plan, "");
      };
      if (verb == "settle") return settle(argument != "never");
      for (int i = 0; i < (argument.is_number() ? argument.get<int>() : 1); ++i) fleet_.tick();
    } else if (verb == "status") {
      show_status("SharingPolicy " + argument.get<std::string>(), Json::parse(fleet_.policy_status(argument)));
    } else if (verb.starts_with("rollout") && verb != "rollout") {
      show_rollouts(verb);
    } else {
      ASSERT_TRUE(verbs().contains(verb)) << "no verb " << verb;
      verbs().at(verb)(fleet_, argument);
    }
  }

  void settle(bool quiet) {
    EXPECT_EQ(fleet_.settle(), quiet) << "a fleet that never comes to rest has {settle: never}";
    out_ += quiet ? "quiet\n" : "never quiet\n";
  }

  // Statuses only where nothing is applied: otherwise they would hide the rest, and the verb `status` shows them.
  void show_actions(const Plan& plan, const std::string& before) {
    const auto annotations = [this](const std::string& node) { return annotations_of(fleet_.node(node)); };
    for (const std::string& line : action_lines(plan.actions, annotations, guards_))
      if (!before.empty() || !line.starts_with("PatchStatus")) put(before + line);
    for (const PlannedAction& planned : plan.actions) {
      const auto* event = std::get_if<RecordEvent>(&planned.action);
      EXPECT_TRUE(event == nullptr || event->regarding.kind != "Node" || is_event_of_nodes(*event)) << print(planned);
    }
  }

  void show_rest(const Plan& plan) {
    for (const Finding& finding : plan.findings) {
      std::string line = print(finding);
      // What the plugin's release does everywhere is the same sentence in many cases.
      if (finding.severity == Severity::info && finding.object.kind == "DaemonSet") line.resize(line.find(": "));
      put("plan: " + line);
    }
    for (const std::string& name : plan.consumers_wanted) put("plan: wants consumers of " + name);
    if (plan.requeue_after) put("plan: again in " + k8s::format_go_duration(*plan.requeue_after));
    if (plan.actions.empty() && plan.findings.empty() && !plan.requeue_after) put("plan: nothing");
  }

  void show_status(const std::string& who, Json status) {
    std::string last;
    for (const Json& said : status.value("conditions", Json::array())) {
      const std::string message = said.at("message");
      put(fmt::format("{}: {} {} {}: {}", who, said.value("type", ""), said.value("status", ""),
                      said.value("reason", ""), message == last ? "the same" : message));
      last = message;
    }
    for (const Json& blocked : status.value("blocked", Json::array()))
      put(fmt::format("{}: blocked: {}", who, document_words(blocked)));
    for (const char* said : {"conditions", "blocked", "observedGeneration"}) status.erase(said);
    put(who + ": " + document_words(status));
  }

  void show_rollouts(const std::string& verb) {
    std::map<std::string, std::pair<const SharingRollout*, Json>> by_start;
    for (const auto& [name, rollout] : fleet_.world.rollouts.all()) {
      Json status = Json::parse(rollout->status_json, nullptr, false);
      if (!status.is_object()) status = Json::object();
      const std::string order = status.value("startedAt", "") + name.name;
      by_start[order] = {rollout.get(), std::move(status)};
    }
    for (auto& [start, entry] : by_start) {
      auto& [rollout, status] = entry;
      const std::string who = "SharingRollout " + rollout->meta.name;
      if (verb == "rollout-nodes")
        for (const Json& node : status.value("nodes", Json::array())) put(who + ": " + document_words(node));
      else if (verb == "rollout-words")
        show_status(who, {{"phase", rollout->phase},
                          {"counts", status.value("counts", Json())},
                          {"conditions", status.value("conditions", Json::array())}});
      else
        put(fmt::format("{}: {}, since {}{}{}{}", who, rollout->phase, status.value("startedAt", ""),
                        rollout->approved ? ", approved" : "", rollout->paused ? ", paused" : "",
                        rollout->aborted ? ", aborted" : ""));
    }
  }

  void put(const std::string& line) {
    out_ += fmt::format("{} {}\n", k8s::format_time(fleet_.now).substr(11, 8), one_line(line));
  }

  FleetModel fleet_;
  bool guards_ = false;
  std::string out_;
};

// Each text occurs after the one before it; what is never printed does not occur between the texts around it.
void check_expected(const Json& expected, const std::string& text) {
  std::size_t from = 0;
  std::vector<std::string> never;
  const auto check_never = [&](std::size_t end) {
    for (const std::string& line : never)
      EXPECT_EQ(text.substr(from, end - from).find(line), std::string::npos) << "never: " << line;
    never.clear();
  };
  for (const Json& line : expected) {
    if (line.is_object()) {
      never.push_back(line.at("never"));
      continue;
    }
    const std::size_t at = text.find(line.get<std::string>(), from);
    ASSERT_NE(at, std::string::npos) << "expected: " << line << " in or after:\n" << text.substr(from);
    check_never(at);
    from = at + line.get<std::string>().size();
  }
  check_never(text.size());
}

class PlannerCase : public ::testing::TestWithParam<std::string> {};

TEST_P(PlannerCase, Holds) {
  auto json = yaml_to_json(testing::read_file(cases_dir() / (GetParam() + ".yaml")));
  ASSERT_TRUE(json) << json.error().message;
  const Json spec = Json::parse(*json);
  const std::string actual = Script(spec).run(spec.at("do"));
  ASSERT_TRUE(spec.contains("expect")) << "write what the case claims of this:\n" << actual;
  check_expected(spec.at("expect"), actual);
}

std::vector<std::string> all_cases() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(cases_dir()))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().stem());
  std::ranges::sort(out);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cases, PlannerCase, ::testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace gso::test::cases_test
