// The checks of one node's setup.
#include "reconcilers/checks/preflight.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/cluster/node_checks.h"
#include "reconcilers/cluster/overrides.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_labels.h"

namespace gso {
namespace {

using Severity = Diagnostic::Severity;
using LabelMode = PlannerSettings::LabelMode;

constexpr std::string_view kMpsRootSetting = "flags.mpsRoot";

// The GPUs as far as the node's labels tell them, where nobody has written them down: enough for the checks that depend
// on model, compute capability and MIG mode.
std::vector<Device> devices_of(const GpuFacts& facts) {
  constexpr std::int64_t kEnough = 2;  // They are all alike.
  if (facts.devices) {
    return *facts.devices;
  }
  Device device;
  device.name = facts.product.empty() ? "GPU" : facts.product;
  device.compute_major = facts.compute_major;
  device.compute_minor = facts.compute_minor;
  if (facts.compute_major == 0) {  // Not known: no complaint but for what no GPU can do.
    device.compute_major = 7;
    device.compute_minor = 5;
  }
  return std::vector<Device>(static_cast<std::size_t>(std::clamp<std::int64_t>(facts.count, 1, kEnough)), device);
}

// The autoscaler that made the node, by the labels that it knows GPU nodes by. Sources: Karpenter's well-known labels;
// GPULabel() of cluster-autoscaler's cloud providers.
std::string_view autoscaler_of(const Node& node) {
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"karpenter.sh/nodepool", "Karpenter"},
      {"karpenter.sh/provisioner-name", "Karpenter"},
      {"cloud.google.com/gke-accelerator", "cluster-autoscaler"},
      {"k8s.amazonaws.com/accelerator", "cluster-autoscaler"},
      {"kubernetes.azure.com/accelerator", "cluster-autoscaler"}};
  for (const auto& [label, autoscaler] : kMarks) {
    if (node.meta.labels.contains(label)) return autoscaler;
  }
  return {};
}

class SetupCheck {
 public:
  explicit SetupCheck(const NodeSetup& setup) : setup_(setup) {}

  std::vector<Diagnostic> run() {
    config_maps();
    if (setup_.profile == nullptr) {
      key();
      return std::move(found_);
    }
    if (!setup_.profile->valid) {
      add(Severity::error, "ConfigInvalid", "",
          fmt::format("key \"{}\" of ConfigMap {}: {}", setup_.key.key, setup_.set.id(), setup_.profile->error));
      return std::move(found_);
    }
    overridden();
    profile_ = setup_.profile->profile();
    if (!setup_.plugin.mig_strategy.empty()) {
      profile_.mig_strategy = setup_.plugin.mig_strategy;
    }
    gpus();
    autoscaler();
    start();
    release();
    if (profile_.strategy() == Strategy::mps && knows_mps(setup_.plugin.version)) {
      mps_root();
      mps_daemon();
    }
    return std::move(found_);
  }

 private:
  void add(Severity severity, std::string code, std::string path, std::string message) {
    found_.push_back({severity, std::move(code), std::move(path), 0, 0, std::move(message)});
  }

  void key() {
    using Source = EffectiveKey::Source;
    const std::string_view label = setup_.node.meta.labels.get(setup_.plugin.node_label).value_or("");
    if (setup_.key.source != Source::error || setup_.config_map == nullptr) {
      return;
    }
    const std::string where = fmt::format("ConfigMap {}: {}", setup_.set.id(), setup_.key.error);
    if (!label.empty()) {
      add(Severity::error, "KeyNotFound", "",
          fmt::format("{} The pods of the node crash-loop. Correct the label {}, or add the key", sentence(where),
                      setup_.plugin.node_label));
      return;
    }
    no_default(where);
  }

  void no_default(const std::string& where) {
    if (!setup_.plugin.default_key.empty()) {
      add(Severity::error, "DefaultKeyNotFound", "",
          fmt::format("{} Name a key that exists as the default, or add the key", sentence(where)));
    } else {
      add(Severity::error, "DefaultMissing", "",
          fmt::format("{} Name a default key, or allow the fallback \"empty\"{}", sentence(where),
                      setup_.start != nullptr || !setup_.plugin.version.known_below(0, 18, 2)
                          ? ""
                          : fmt::format(", or label the node {}=<key>", setup_.plugin.node_label)));
    }
  }

  // Errors of the document that nothing on this node reads.
  void overridden() {
    for (const Diagnostic& d : setup_.profile->parsed.diagnostics) {
      if (d.severity == Severity::error && setup_.profile->beaten.contains(d.code)) {
        add(Severity::warning, "SettingOverridden", d.path,
            fmt::format(
                "wrong in key \"{}\" of ConfigMap {}, and without effect here: the DaemonSet's own setting beats "
                "it; correct it all the same",
                setup_.key.key, setup_.set.id()));
      }
    }
  }

  // A node that a label chooses for: its init container sees no label yet, and applies the default or fails.
  void start() {
    if (setup_.start == nullptr) {
      return;
    }
    if (setup_.start->source == EffectiveKey::Source::error) {
      no_default(
          fmt::format("ConfigMap {}: {}. Plugin {} needs one on a labelled node too: its init container does not "
                      "see the label, and the next restart of a pod leaves the node without GPUs",
                      setup_.set.id(), setup_.start->error, setup_.plugin.version.to_string()));
    } else if (setup_.start_profile != nullptr && !setup_.start_profile->valid) {
      add(Severity::warning, "DefaultInvalid", "",
          fmt::format("key \"{}\" of ConfigMap {}, the default, has an error, and plugin {} loads it first at every "
                      "start, on a labelled node too: {}",
                      setup_.start->key, setup_.set.id(), setup_.plugin.version.to_string(),
                      setup_.start_profile->error));
    }
  }

  static std::string sentence(const std::string& text) { return text.ends_with('.') ? text : text + "."; }

  // One that is none of the node's set.
  [[nodiscard]] const Operand* other(Component component) const {
    const Operand* found = find_stray(setup_.strays, component, setup_.node);
    return found != nullptr && component == Component::mps && found->key.ns != setup_.set.ns ? nullptr : found;
  }

  // GFD and MPS daemon must load what the plugin loads.
  void config_maps() {
    const bool mps =
        setup_.profile != nullptr && setup_.profile->valid && setup_.profile->profile().strategy() == Strategy::mps;
    if (const Operand* gfd = setup_.gfd != nullptr ? setup_.gfd : other(Component::gfd); gfd != nullptr) {
      same_config(*gfd, Severity::warning, "GFDOtherConfig", "the node's labels will not show its profile");
    }
    if (const Operand* daemon = setup_.mps != nullptr ? setup_.mps : other(Component::mps); daemon != nullptr && mps) {
      same_config(*daemon, Severity::error, "MPSOtherConfig",
                  "the plugin will wait for an MPS daemon that never starts");
    }
  }

  void same_config(const Operand& operand, Severity severity, std::string code, std::string_view effect) {
    const std::string difference = config_difference(operand, setup_.plugin);
    if (difference.empty()) {
      return;
    }
    add(severity, std::move(code), "",
        fmt::format("DaemonSet {} {}: {}; give both the same", k8s::to_string(operand.key), difference, effect));
  }

  void gpus() {
    std::vector<Device> devices = devices_of(setup_.facts);
    if (setup_.facts.mig_enabled && !setup_.facts.devices) {
      // Which MIG devices there are is not known: only what MPS cannot do is certain.
      if (profile_.strategy() == Strategy::mps) {
        add(Severity::error, "MIGEnabled", "sharing.mps",
            fmt::format("the node's GPUs have MIG enabled: {}", kMpsWithMig));
      }
      mig_names();
      devices.clear();
    }
    for (Diagnostic& found : check_on_node(profile_, devices)) {
      found_.push_back(std::move(found));
    }
  }

  // Autoscalers count nvidia.com/gpu, by that name.
  void autoscaler() {
    const std::string_view by = autoscaler_of(setup_.node);
    const SharingSection* active = profile_.active();
    const bool renames = active != nullptr && active->rename_by_default && profile_.plugin_replicas(kGpuResource) > 1;
    if (by.empty() || !renames) return;
    const std::string_view section = profile_.strategy() == Strategy::mps ? "mps" : "timeSlicing";
    add(Severity::warning, "RenameHidesGPUFromAutoscaler", fmt::format("sharing.{}.renameByDefault", section),
        fmt::format("the node serves nvidia.com/gpu.shared and no nvidia.com/gpu, the name by which {} knows that its "
                    "GPUs are ready: it may take the node for unready or empty, and adds none for pods that ask for "
                    "nvidia.com/gpu.shared; leave renameByDefault out on nodes that it makes",
                    by));
  }

  // Entries for MIG profiles that GFD's labels do not show.
  void mig_names() {
    const SharingSection* active = profile_.active();
    const auto& shown = setup_.facts.mig_counts;
    if (active == nullptr || shown.empty() || profile_.mig_strategy != "mixed" || profile_.mps) {
      return;
    }
    for (std::size_t i = 0; i < active->resources.size(); ++i) {
      const std::string& name = active->resources[i].name;
      if (name.starts_with("nvidia.com/mig-") && !shown.contains(name)) {
        add(Severity::warning, "NameMatchesNothing", fmt::format("sharing.timeSlicing.resources[{}].name", i),
            fmt::format("no device of this node is a {}, so the entry does nothing here", name));
      }
    }
  }

  void release() {
    const bool mps = profile_.strategy() == Strategy::mps;
    std::string refused = mps ? mps_by_label_refusal(setup_.plugin, setup_.key) : std::string();
    for (Diagnostic& found :
         check_on_release(profile_, setup_.plugin.version, setup_.key.source == EffectiveKey::Source::label)) {
      const bool worked_around = found.code == "DefaultFirstStart" || found.code.starts_with("MPSSidecar");
      if (!refused.empty() && found.code.starts_with("MPSSidecar")) {
        continue;  // No replaced pod helps.
      }
      found.severity = worked_around ? Severity::info : found.severity;
      found_.push_back(std::move(found));
    }
    if (!refused.empty()) {
      add(Severity::error, "MPSByLabelUnsupported", "sharing.mps", std::move(refused));
    }
  }

  void mps_root() {
    if (has_mps_root(setup_.plugin, profile_)) {
      return;
    }
    add(Severity::error, "MPSRootMissing", std::string(kMpsRootSetting),
        fmt::format(
            "DaemonSet {} sets no --mps-root (environment variable MPS_ROOT{}), and the plugin exits with an MPS "
            "profile; set it, usually to /run/nvidia/mps",
            k8s::to_string(setup_.plugin.key),
            setup_.plugin.overrides.contains("MPS_ROOT") ? ": it is there, and empty, which beats the profile" : ""));
  }

  void mps_daemon() {
    if (setup_.mps == nullptr && other(Component::mps) != nullptr) {
      return;  // MPSOtherConfig says it.
    }
    if (setup_.mps == nullptr) {
      add(Severity::error, "MPSDaemonMissing", "sharing.mps",
          "no DaemonSet of the MPS control daemon selects the node: the plugin waits for it for ever, and the node has "
          "0 "
          "GPUs");
      return;
    }
    const auto wanted = setup_.mps->node_selector.find(std::string(kMpsCapable));
    const auto capable = setup_.node.meta.labels.get(kMpsCapable);
    if (wanted == setup_.mps->node_selector.end() || capable == wanted->second) {
      return;
    }
    const std::string pods = fmt::format("the MPS daemon's pods (DaemonSet {}) need the node label {}={}",
                                         k8s::to_string(setup_.mps->key), kMpsCapable, wanted->second);
    const Operand* gfd = setup_.gfd != nullptr ? setup_.gfd : other(Component::gfd);
    if (setup_.gfd == nullptr && gfd != nullptr && !config_difference(*gfd, setup_.plugin).empty()) {
      add(Severity::error, "MPSDaemonHasNoPods", "sharing.mps",
          fmt::format("{}, and GPU Feature Discovery, which writes it, loads another ConfigMap; give it the plugin's",
                      pods));
    } else if (gfd == nullptr) {
      const bool nfds = nfd_owned(setup_.node).contains(std::string(kMpsCapable));
      const bool we_write = setup_.label_mode != LabelMode::verify && !nfds;
      add(we_write ? Severity::info : Severity::error, "MPSDaemonHasNoPods", "sharing.mps",
          fmt::format("{}, and no GPU Feature Discovery runs there to write it; {}", pods,
                      we_write ? "the operator writes it once the fleet's baseline is recorded"
                      : nfds
                          ? "Node Feature Discovery owns the label, so that nobody else may write it: install GFD, or "
                            "remove the NodeFeature that it comes from"
                          : "install GFD and NFD, or set the label by hand"));
    } else if (!nfd_serves()) {
      add(Severity::warning, "NFDMissing", "sharing.mps",
          fmt::format("{}; GFD runs there, but nothing on the node shows that Node Feature Discovery turns its answers "
                      "into labels: install NFD",
                      pods));
    }
  }

  // Node Feature Discovery leaves its annotations and labels on each node that it serves.
  [[nodiscard]] bool nfd_serves() const {
    const auto from_nfd = [](std::string_view key) {
      return key.find("nfd.node.kubernetes.io/") != std::string_view::npos ||
             key.starts_with("feature.node.kubernetes.io/");
    };
    const auto& meta = setup_.node.meta;
    return meta.labels.contains(kGpuCount) || meta.labels.contains(kMpsCapable) ||
           std::any_of(meta.annotations.begin(), meta.annotations.end(),
                       [&](const auto& entry) { return from_nfd(entry.key.view()); }) ||
           std::any_of(meta.labels.begin(), meta.labels.end(),
                       [&](const auto& entry) { return from_nfd(entry.key.view()); });
  }

  const NodeSetup& setup_;
  Profile profile_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> check_node_setup(const NodeSetup& setup) {
  return SetupCheck(setup).run();
}

std::string mps_by_label_refusal(const Operand& plugin, const EffectiveKey& key) {
  const bool by_label = key.source == EffectiveKey::Source::label && key.key != plugin.default_key;
  if (!by_label || plugin.version.known_below(0, 18, 2)) {
    return {};
  }
  return fmt::format(
      "MPS selected by label does not work with device plugin {} (v0.18.2 and later): make {} the default key "
      "(devicePlugin.config.default) and label the other nodes",
      plugin.version.to_string(), key.key);
}

SetupBook::Answer SetupBook::check(const NodeSetup& setup) {
  if (setup.facts.devices) {  // Rare, and of its own.
    return std::make_shared<const std::vector<Diagnostic>>(check_node_setup(setup));
  }
  const auto& labels = setup.node.meta.labels;
  const auto* gfd = static_cast<const void*>(setup.gfd);
  const auto* mps = static_cast<const void*>(setup.mps);
  const std::string start = setup.start == nullptr           ? std::string()
                            : setup.start_profile == nullptr ? setup.start->error
                            : setup.start_profile->valid
                                ? std::string()
                                : fmt::format("{}|{}", setup.start->key, setup.start_profile->error);
  // A policy's label may not be on the node yet.
  const bool labelled = !labels.get(setup.plugin.node_label).value_or("").empty();
  const bool by_label = setup.key.source == EffectiveKey::Source::label;
  const std::string chosen =
      fmt::format("{}{}{}", labelled, by_label, by_label && setup.key.key == setup.plugin.default_key);
  // An invalid profile has no revision of its own.
  const std::string profile = setup.profile == nullptr ? setup.key.error
                              : setup.profile->valid   ? setup.profile->revision
                                                       : fmt::format("{}|{}", setup.key.key, setup.profile->error);
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}.{}|{}|{}|{}|{}|{}", fmt::ptr(&setup.plugin), fmt::ptr(gfd), fmt::ptr(mps),
                  profile, setup.facts.product, std::min<std::int64_t>(setup.facts.count, 2), setup.facts.compute_major,
                  setup.facts.compute_minor, setup.facts.mig_enabled, chosen, labels.get(kMpsCapable).value_or(""),
                  labels.contains(kGpuCount), start);
  if (setup.gfd == nullptr && nfd_owned(setup.node).contains(std::string(kMpsCapable))) {
    key += "|NFD's";
  }
  if (const std::string_view by = autoscaler_of(setup.node); !by.empty()) {
    key += fmt::format("|{}", by);
  }
  for (const auto& [resource, count] : setup.facts.mig_counts) {
    key += "|" + resource;
  }
  // Strays and NFD's traces differ from node to node only where something is wrong already.
  if (!setup.strays.empty() || !labels.contains(kGpuCount)) {
    key += "|" + setup.node.meta.name;
  }
  Answer& answer = answers_[key];
  if (answer == nullptr) {
    answer = std::make_shared<const std::vector<Diagnostic>>(check_node_setup(setup));
  }
  return answer;
}

}  // namespace gso
