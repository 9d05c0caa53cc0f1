// What happens on the nodes of the model: pods start, config files are read, resources are served and labels shown.
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/fleet_model/node_programs.h"
#include "tests/sim/fleet/config_choice.h"

namespace gso::test {

namespace {

// Instead of a text: config-manager found no key to load.
constexpr std::string_view kUnchosen = "?";

}  // namespace

std::string FleetModel::effective_text(const Node& node) const {
  if (config_map_.empty()) return {};
  std::vector<std::string> keys;
  for (const auto& [key, text] : data_) keys.push_back(key);
  const auto key = sim::choose_config(std::string(node.meta.labels.get(kConfigLabel).value_or("")), template_default_,
                                      spec_.fallback, keys);
  if (!key) return std::string(kUnchosen);
  return key->empty() ? std::string() : data_.at(*key);
}

std::optional<sim::PluginConfig> FleetModel::config_of(const std::string& text, const NodeSpec& node) {
  if (text == kUnchosen) return std::nullopt;
  auto known = configs_.find(text);
  if (known == configs_.end()) {
    const auto read = sim::read_plugin_config(text, sim::PluginVersion::of_image(spec_.plugin));
    known = configs_.emplace(text, read ? std::optional(*read) : std::nullopt).first;
  }
  std::optional<sim::PluginConfig> out = known->second;
  if (!out) return out;
  // MIG_STRATEGY overrides the file.
  if (!spec_.mig_strategy.empty())
    out->mig_strategy = spec_.mig_strategy;
  else if (node.mig)
    out->mig_strategy = "single";
  return out;
}

bool FleetModel::exits(std::string_view component, const std::optional<sim::PluginConfig>& config,
                       const NodeSpec& node) const {
  if (!config) return true;
  if (component == "plugin" && config->mps && !spec_.mps_root) return true;
  return !exit_reason(component, *config, node).empty();
}

// One second in the life of a node.
void FleetModel::run_machine(const std::string& name, Machine& machine) {
  if (!node(name).ready) return;
  const bool wants_mps_pod = node(name).meta.labels.get(kMpsCapable) == "true";
  const std::string deploy(node(name).meta.labels.get("nvidia.com/gpu.deploy.device-plugin").value_or(""));
  const bool paused = deploy.starts_with("paused-for-");
  const bool away = paused || deploy != "true";
  if (away) machine.plugin_up = false;
  for (std::string_view component : kComponents) {
    const auto present = pods(name, component);
    const bool due =
        component == "gfd" ? !paused && machine.spec.gfd : !away && (component == "plugin" || wants_mps_pod);
    if (due && present.empty()) {
      make_pod(name, component);
      if (component == "plugin") machine.plugin_up = false;
      continue;
    }
    if (!due) {
      for (const Pod* pod : present) delete_pod(pod->meta.key(), std::string(pod->meta.uid));
      continue;
    }
    const Pod* pod = present.empty() ? nullptr : present.front();
    // A crashed container is restarted.
    if (pod == nullptr || (pod->phase == "Running" && pod->ready)) continue;
    if (component == "plugin" && machine.holds_pods) continue;
    Pod up = *pod;
    const bool ill =
        !up.init_containers.empty() || (!up.containers.empty() && up.containers.front().name == "config-manager");
    if (ill) continue;  // Only a new pod fixes it.
    if (up.phase == "Pending" && come_up_ill(machine, component, up)) {
      up.meta.resource_version = std::to_string(++serial_);
      world.operand_pods.apply(up);
      continue;
    }
    const bool broken = (component == "plugin" && machine.crashes) ||
                        exits(component, config_of(effective_text(node(name)), machine.spec), machine.spec);
    up.phase = k8s::Interned("Running");
    up.meta.resource_version = std::to_string(++serial_);
    up.ready = !broken;
    ContainerStatus status;
    status.name = k8s::Interned(component);
    status.ready = up.ready;
    if (broken) status.waiting_reason = k8s::Interned("CrashLoopBackOff");
    up.containers = {status};
    world.operand_pods.apply(up);
    if (component == "plugin") {
      machine.plugin_up = !broken;
      if (!machine.stuck) machine.plugin_text = effective_text(node(name));
    }
    if (component == "gfd" && !broken && !machine.stuck_labels) machine.gfd_text = effective_text(node(name));
  }
  const auto mps_pods = pods(name, "mps");
  const bool mps_ready = !mps_pods.empty() && mps_pods.front()->ready;
  serve_and_show(name, machine, mps_ready);
}

// The resources that the plugin has registered, and the labels that NFD wrote from GPU Feature Discovery's results.
void FleetModel::serve_and_show(const std::string& name, const Machine& machine, bool mps_ready) {
  std::map<std::string, std::int64_t> resources;
  const auto served = machine.plugin_up ? config_of(machine.plugin_text, machine.spec) : std::nullopt;
  if (served && (mps_ready || !served->mps)) resources = served_devices(*served, machine.spec, machine.broken_devices);
  const auto shown_config = machine.spec.gfd ? config_of(machine.gfd_text, machine.spec) : std::nullopt;
  const auto shown = shown_config ? shown_labels(*shown_config, machine.spec) : std::nullopt;
  change_node(name, [&](Node& out) {
    for (auto& [resource, count] : out.allocatable) count = 0;
    for (const auto& [resource, count] : resources) {
      const k8s::Interned key{resource};
      out.allocatable[key] = count;
      if (count > 0) out.capacity[key] = count;
    }
    if (!shown) return;  // GFD exits: its labels stay.
    std::string owned;
    for (const auto& [key, value] : *shown) {
      out.meta.labels.set(key, value);
      owned += (owned.empty() ? "" : ",") + key;
    }
    out.meta.annotations.set(kFeatureLabels, owned);
  });
}

bool FleetModel::come_up_ill(Machine& machine, std::string_view component, Pod& pod) {
  const auto it = machine.pod_faults.find(component);
  if (it == machine.pod_faults.end() || it->second.second <= 0) return false;
  --it->second.second;
  ContainerStatus status;
  if (it->second.first == "created") {
    status.name = k8s::Interned("config-manager-init");
    pod.init_containers = {status};
    return true;
  }
  status.name = k8s::Interned("config-manager");
  status.waiting_reason = k8s::Interned("CrashLoopBackOff");
  status.restarts = 4;
  status.last_terminated = Rare(Termination{1, {}, k8s::Interned(it->second.first)});
  pod.containers = {status};
  pod.phase = k8s::Interned("Running");
  return true;
}

}  // namespace gso::test
