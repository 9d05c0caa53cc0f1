// Golden cases: each cases/<name>.yaml is a fleet and the events on it; cases/<name>.golden has the planner's answers.
// GSO_UPDATE_GOLDEN=1 rewrites the goldens; review the difference as code.
//
//   fleet: {plugin: v0.20.0, default: any, profiles: {any: mps-4}, nodes: [{name: n1, gpus: 2}, {count: 8, prefix: a}]}
//   settings: {settle: 10s, cluster: 50%, statusLag: 12s, adopt: true, rollouts: Observe}
//   do:
//   - baseline                 # plans and applies until the fleet is quiet; prints nothing
//   - edit: {any: mps-8}       # edit, label, annotate, announce, roll, roll-back, use, release, ready, policy, …
//   - change: {n1: {guards: [karpenter]}}  # writes the annotations of a change as the operator would, or the remains
//   - advance: 10s
//   - plan                     # prints the plan, applies nothing
//   - tick                     # prints the plan, applies it, one second passes; {tick: 3}: three times
//   - quick-tick: 12           # the same, a tenth of a second for each
//   - rollouts                 # prints the phase of every SharingRollout; rollout-starts: since when, and its
//                              switches; rollout-words: its counts and conditions
//   - undo: p                  # undoes the newest rollout of policy p; forget-rollouts: deletes the finished ones
//   - lose-rollout-status      # of every SharingRollout
//   - status: default          # prints the status of a policy
//   - settle                   # until quiet; prints every action on the way
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/policy.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/fleet_model/same_plan_checks.h"

namespace gso::test::golden_cases_test {
namespace {

using Json = nlohmann::json;

std::filesystem::path cases_dir() {
  const char* root = std::getenv("GSO_SOURCE_DIR");
  return std::filesystem::path(root ? root : ".") / "tests/reconcilers/cases";
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::map<std::string, std::string> string_map(const Json& json) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : json.items()) out[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return out;
}

NodeSpec node_spec(const Json& json) {
  NodeSpec out;
  out.name = json.value("name", "");
  out.gpus = json.value("gpus", 2);
  out.product = json.value("product", out.product);
  out.labels = string_map(json.value("labels", Json::object()));
  out.annotations = string_map(json.value("annotations", Json::object()));
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
  if (json.contains("profiles")) out.profiles = string_map(json["profiles"]);
  out.on_delete = json.value("onDelete", false);
  out.crds = json.value("crds", true);
  out.immutable = json.value("immutable", false);
  out.api_behind = *k8s::parse_go_duration(json.value("apiBehind", "0s"));
  out.mig_strategy = json.value("migStrategy", "");
  for (const Json& node : json.at("nodes")) {
    if (!node.contains("count")) {
      out.nodes.push_back(node_spec(node));
      continue;
    }
    for (NodeSpec& made : alike_nodes(node["count"], "", node.value("prefix", "n"))) {
      NodeSpec filled = node_spec(node);
      filled.name = made.name;
      out.nodes.push_back(std::move(filled));
    }
  }
  return out;
}

class Script {
 public:
  explicit Script(const Json& spec) : fleet_(fleet_spec(spec.at("fleet"))), guards_(spec.value("guards", false)) {
    const Json settings = spec.value("settings", Json::object());
    if (settings.contains("settle"))
      fleet_.settings.settle = *k8s::parse_go_duration(settings["settle"].get<std::string>());
    if (settings.contains("cluster"))
      fleet_.settings.cluster_max_unavailable = *IntOrPercent::parse(settings["cluster"].get<std::string>());
    else
      fleet_.settings.cluster_max_unavailable = {100, true};
    fleet_.settings.status_lag = *k8s::parse_go_duration(settings.value("statusLag", "0s"));
    fleet_.settings.projection = *k8s::parse_go_duration(settings.value("projection", "3s"));
    for (const Json& ns : settings.value("removeRejectedPods", Json::array()))
      fleet_.settings.remove_rejected_pods.insert(ns.get<std::string>());
    fleet_.settings.adopt_drift = settings.value("adopt", false);
    fleet_.settings.mps_signal_fixed = settings.value("mpsSignalFixed", false);
    set_rollouts(settings.value("rollouts", ""));
    if (settings.value("labels", "") == "verify") fleet_.settings.label_mode = PlannerSettings::LabelMode::verify;
    fleet_.settings.rollout.canary_soak = std::chrono::seconds(5);
  }

  std::string run(const Json& steps) {
    for (const Json& step : steps) {
      if (step.is_string())
        perform(step.get<std::string>(), nullptr);
      else
        for (const auto& [verb, argument] : step.items()) perform(verb, argument);
    }
    return out_;
  }

 private:
  void set_rollouts(const std::string& mode) {
    if (mode == "Observe") fleet_.settings.rollouts = PolicyMode::observe;
    if (mode == "Approve") fleet_.settings.rollouts = PolicyMode::approve;
  }

  void perform(const std::string& verb, const Json& argument) {
    if (verb == "baseline") {
      ASSERT_TRUE(fleet_.settle()) << "the fleet did not come to rest";
      // During this time the second of the baseline passes, so that later edits are newer.
      fleet_.advance(std::chrono::seconds(5));
      return;
    }
    if (verb == "plan") {
      const Plan plan = fleet_.plan();
      check_same_plan(fleet_);
      return show("plan", plan, true);
    }
    if (verb == "tick") {
      for (int i = 0; i < (argument.is_number() ? argument.get<int>() : 1); ++i) tick();
      return;
    }
    if (verb == "settle") {
      fleet_.on_plan = [this](const Plan& plan) {
        check_same_plan(fleet_);
        show("tick", plan, false);
      };
      const bool quiet = fleet_.settle();
      fleet_.on_plan = nullptr;
      out_ += quiet ? "quiet\n" : "NOT QUIET\n";
      return;
    }
    if (verb == "quick-tick") {
      for (int i = 0; i < argument.get<int>(); ++i) {
        const Plan plan = fleet_.plan();
        show("tick", plan, false);
        fleet_.apply(plan);
        fleet_.advance(std::chrono::milliseconds(100));
      }
      return;
    }
    if (verb == "advance") return fleet_.advance(*k8s::parse_go_duration(argument.get<std::string>()));
    out_ += fmt::format("-- {}{}\n", verb, argument.is_null() ? "" : " " + argument.dump());
    happen(verb, argument);
  }

  // Printed with the time after the tick, and with the node annotations from before it.
  void tick() {
    std::string text;
    fleet_.on_plan = [&](const Plan& plan) {
      check_same_plan(fleet_);
      text = text_of(plan, false);
    };
    fleet_.tick();
    fleet_.on_plan = nullptr;
    put("tick", text);
  }

  void happen(const std::string& verb, const Json& argument) {
    if (verb == "restart") return fleet_.restart_operator();
    if (verb == "edit") {
      for (const auto& [key, text] : string_map(argument)) fleet_.edit(key, text);
    } else if (verb == "record") {  // A person wrote into the operator's state.
      fleet_.write_record(argument.get<std::string>());
    } else if (verb == "annotate-state") {
      for (const auto& [key, value] : string_map(argument)) fleet_.annotate_state(key, value);
    } else if (verb == "crds") {  // false: the CRDs are deleted, with all their objects.
      fleet_.serve_crds(argument);
    } else if (verb == "delete-rollouts") {
      fleet_.delete_rollouts();
    } else if (verb == "reboot-with-gpus") {
      for (const auto& [node, gpus] : argument.items()) fleet_.reboot_with_gpus(node, gpus);
    } else if (verb == "remove-key") {
      fleet_.remove_key(argument);
    } else if (verb == "replace-configmap") {
      fleet_.replace_config_map(string_map(argument));
    } else if (verb == "generate-configmap") {
      fleet_.generate_config_map(argument.at("name"), string_map(argument.at("profiles")));
    } else if (verb == "drop-configmap") {
      fleet_.drop_config_map();
    } else if (verb == "daemonsets") {
      fleet_.set_daemonsets_there(argument);
    } else if (verb == "edit-our-key") {
      for (const auto& [key, text] : fleet_.world.configmaps.find(ObjectKey{"gpu-operator", "mps-config"})->data)
        if (is_managed_key(key)) names_.push_back(key);
      for (const std::string& key : names_) fleet_.edit(key, argument.get<std::string>());
      names_.clear();
    } else if (verb == "stuck") {
      for (const auto& [node, stuck] : argument.items()) fleet_.stick_sidecars(node, stuck);
    } else if (verb == "rollouts") {
      std::map<std::string, std::string> phases;
      for (const auto& [name, rollout] : fleet_.world.rollouts.all()) phases[name.name] = rollout->phase;
      for (const auto& [name, phase] : phases) out_ += fmt::format("  {}: {}\n", name, phase);
    } else if (verb == "rollout-starts") {
      std::map<std::string, std::string> lines;
      for (const auto& [name, rollout] : fleet_.world.rollouts.all()) {
        const Json status = Json::parse(rollout->status_json, nullptr, false);
        const std::string since = status.is_object() ? status.value("startedAt", "") : "";
        lines[since + name.name] = fmt::format("  {}: {}, since {}{}{}{}\n", name.name, rollout->phase, since,
                                               rollout->approved ? ", approved" : "", rollout->paused ? ", paused" : "",
                                               rollout->aborted ? ", aborted" : "");
      }
      for (const auto& [order, line] : lines) out_ += line;
    } else if (verb == "rollout-words") {
      std::map<std::string, std::string> lines;
      for (const auto& [name, rollout] : fleet_.world.rollouts.all()) {
        std::string& line = lines[name.name];
        line = fmt::format("  {}: {}\n", name.name, rollout->phase);
        const Json status = Json::parse(rollout->status_json, nullptr, false);
        if (!status.is_object()) continue;
        line += "    " + status.value("counts", Json::object()).dump() + "\n";
        for (const Json& said : status.value("conditions", Json::array())) {
          line += fmt::format("    {}={} {}: {}\n", said.value("type", ""), said.value("status", ""),
                              said.value("reason", ""), said.value("message", ""));
        }
      }
      for (const auto& [name, line] : lines) out_ += line;
    } else if (verb == "status") {
      out_ += Json::parse(fleet_.policy_status(argument)).dump(1) + "\n";
    } else if (verb == "label") {
      for (const auto& [node, labels] : argument.items())
        for (const auto& [key, value] : labels.items())
          fleet_.label(node, key, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    } else if (verb == "annotate") {
      for (const auto& [node, annotations] : argument.items())
        for (const auto& [key, value] : annotations.items())
          fleet_.annotate(node, key, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    } else if (verb == "change") {
      for (const auto& [node, change] : argument.items()) {
        ChangeWords words;
        words.to = change.value("to", "");
        for (const Json& guard : change.value("guards", Json::array())) words.guards.insert(guard.get<std::string>());
        for (const auto& [key, value] : write_change(words)) fleet_.annotate(node, key, value);
      }
    } else if (verb == "annotate-configmap") {
      for (const auto& [key, value] : argument.items())
        fleet_.annotate_config_map(key, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    } else if (verb == "announce") {
      fleet_.announce_default(argument);
    } else if (verb == "forbid-clusterpolicies") {
      fleet_.forbid_clusterpolicies(argument);
    } else if (verb == "roll") {
      fleet_.roll_templates(argument);
    } else if (verb == "roll-back") {
      fleet_.roll_templates_back(argument);
    } else if (verb == "policy") {
      fleet_.policy(argument.get<std::string>());
    } else if (verb == "set-rollouts") {  // Another configuration: the operator restarts.
      set_rollouts(argument);
      fleet_.restart_operator();
    } else if (verb == "undo") {
      fleet_.undo_newest_rollout(argument);
    } else if (verb == "lose-rollout-status") {
      fleet_.lose_rollout_status();
    } else if (verb == "forget-rollouts") {
      fleet_.forget_finished_rollouts();
    } else if (verb == "remove-policy") {
      fleet_.remove_policy(argument);
    } else if (verb == "rollout") {
      for (const auto& [name, rollout] : fleet_.world.rollouts.all()) names_.push_back(name.name);
      for (const auto& [field, value] : argument.items())
        for (const std::string& name : names_) fleet_.rollout_switch(name, field, value);
      names_.clear();
    } else if (verb == "use") {
      for (const auto& [node, pod] : argument.items()) {
        fleet_.use(node, pod.value("pod", "job"), pod.value("resource", "nvidia.com/gpu"), pod.value("count", 1),
                   string_map(pod.value("annotations", Json::object())));
      }
    } else if (verb == "job") {
      for (const auto& [node, pod] : argument.items())
        fleet_.use_by_job(node, pod.at("pod"), pod.at("job"), string_map(pod.value("annotations", Json::object())));
    } else if (verb == "protect") {
      for (const auto& [pod, answer] : string_map(argument)) fleet_.protect(pod, answer);
    } else if (verb == "forbid") {
      for (const auto& [pod, answer] : string_map(argument)) fleet_.forbid(pod, answer);
    } else if (verb == "refuse-writes") {  // Lists these nodes; empty: no write is refused.
      fleet_.refused_writes = string_map(argument);
    } else if (verb == "reject") {
      for (const auto& [node, pod] : argument.items())
        fleet_.reject(node, pod.at("pod"), pod.value("namespace", "jobs"));
    } else if (verb == "reboot") {
      fleet_.reboot(argument);
    } else if (verb == "kill-daemons") {
      for (const auto& [node, kill] : argument.items()) fleet_.kill_daemons(node, kill);
    } else if (verb == "ail") {
      for (const auto& [node, ill] : argument.items())
        fleet_.ail(node, ill.at("component"), ill.at("how"), ill.value("pods", 1));
    } else if (verb == "break-device") {
      for (const auto& [node, devices] : argument.items()) fleet_.break_device(node, devices);
    } else if (verb == "gpu-cluster") {
      fleet_.gpu_cluster(argument);
    } else if (verb == "dra-slice") {
      fleet_.offer_by_dra(argument);
    } else if (verb == "device-class") {
      fleet_.device_class(argument);
    } else if (verb == "rollout-nodes") {
      for (const auto& [name, rollout] : fleet_.world.rollouts.all()) {
        const Json status = Json::parse(rollout->status_json, nullptr, false);
        if (status.is_object() && status.contains("nodes")) out_ += status["nodes"].dump(1) + "\n";
      }
    } else if (verb == "release") {
      fleet_.release(argument);
    } else if (verb == "ready") {
      for (const auto& [node, ready] : argument.items()) fleet_.set_ready(node, ready);
    } else if (verb == "cordon") {
      for (const auto& [node, cordoned] : argument.items()) fleet_.cordon(node, cordoned);
    } else if (verb == "crash") {
      for (const auto& [node, crash] : argument.items()) fleet_.crash_pods(node, crash);
    } else if (verb == "add-node") {
      fleet_.add_node(node_spec(argument));
    } else if (verb == "remove-node") {
      fleet_.remove_node(argument);
    } else if (verb == "delete-pod") {
      for (const auto& [node, component] : string_map(argument)) fleet_.delete_pod_of(node, component);
    } else {
      FAIL() << "no verb " << verb;
    }
  }

  // As text, so that goldens show what a change means and not how its annotations are encoded. Marks for autoscalers
  // are part of every start and every end: they are printed only if a case requests them (guards: true).
  std::string shown(const PlannedAction& planned) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr) return print(planned);
    Annotations& before = annotations_.try_emplace(patch->name, annotations_of(fleet_.node(patch->name))).first->second;
    std::string line = print_in_words(planned, before, guards_);
    before = patched(std::move(before), *patch);  // A later patch of the same plan applies after this one.
    return line;
  }

  void show(std::string_view what, const Plan& plan, bool all) { put(what, text_of(plan, all)); }

  void put(std::string_view what, const std::string& text) {
    if (!text.empty()) out_ += fmt::format("{} {}\n{}", k8s::format_time(fleet_.now).substr(11, 8), what, text);
  }

  std::string text_of(const Plan& plan, bool all) {
    std::string text;
    annotations_.clear();
    for (const PlannedAction& action : plan.actions) {
      // Other tests print statuses; here they would hide the rest.
      if (!all && std::holds_alternative<PatchStatus>(action.action)) continue;
      text += "  " + shown(action) + "\n";
    }
    if (!all) return text;
    for (const Finding& finding : plan.findings) text += "  finding " + print(finding) + "\n";
    for (const std::string& name : plan.consumers_wanted) text += "  wants consumers of " + name + "\n";
    if (plan.requeue_after) text += fmt::format("  again in {}\n", k8s::format_go_duration(*plan.requeue_after));
    return text.empty() ? "  nothing\n" : text;
  }

  FleetModel fleet_;
  bool guards_ = false;
  std::map<std::string, Annotations> annotations_;  // By node, as changed by the printed plan.
  std::vector<std::string> names_;
  std::string out_;
};

class PlannerCase : public testing::TestWithParam<std::string> {};

TEST_P(PlannerCase, Answers) {
  const auto path = cases_dir() / (GetParam() + ".yaml");
  auto json = yaml_to_json(read_file(path));
  ASSERT_TRUE(json) << json.error().message;
  const Json spec = Json::parse(*json);
  const std::string actual = Script(spec).run(spec.at("do"));
  const auto golden = cases_dir() / (GetParam() + ".golden");
  if (std::getenv("GSO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << actual;
    return;
  }
  EXPECT_EQ(actual, read_file(golden)) << "GSO_UPDATE_GOLDEN=1 takes this as the new answer";
}

std::vector<std::string> all_cases() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(cases_dir()))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().stem());
  std::ranges::sort(out);
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  std::ranges::replace_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cases, PlannerCase, testing::ValuesIn(all_cases()), test_name);

// Nodes are many: an Event of a node is for what a person must do, or has done, on that node. Everything else is an
// Event of a policy or of a SharingRollout.
TEST(GoldenCases, HaveEventsOfNodesForTheseReasonsOnly) {
  const std::set<std::string> allowed = {
      "Block",                      // An obstacle of this node alone, whatever its reason.
      "Verify VerificationFailed",  // It keeps its cordon.
      "Verify LoadedUngated",       // Somebody else has restarted its pods; of six nodes and more, one Event.
      "Restart MPSUncleanExit",     // Its GPUs might need a person.
      "Abandon Abandoned",          // The change ends, because no plugin serves the node any more.
      "Abandon PartitionedByNos",   // The same, because nos does.
      "Drain Uncordoned",           // A person has uncordoned it, and it is deferred.
  };
  const std::regex event("RecordEvent (?:Normal|Warning) Node \\S+ (\\w+)/(\\w+):");
  for (const auto& entry : std::filesystem::directory_iterator(cases_dir())) {
    if (entry.path().extension() != ".golden") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator found(text.begin(), text.end(), event), end; found != end; ++found) {
      const std::string reason = (*found)[1];
      const std::string action = (*found)[2];
      EXPECT_TRUE(allowed.contains(action) || allowed.contains(action + " " + reason))
          << entry.path().filename() << ": " << found->str();
    }
  }
}

}  // namespace
}  // namespace gso::test::golden_cases_test
