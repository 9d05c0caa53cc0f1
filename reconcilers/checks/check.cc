// The setup of a node, and its preflight.
#include "reconcilers/checks/check.h"

#include <algorithm>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"

namespace gso {
namespace {

// The autoscaler that made the node, detected by its label for GPU nodes. Sources: Karpenter's well-known labels;
// GPULabel() of cluster-autoscaler's cloud providers.
std::string_view autoscaler_of(const Node& node) {
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"karpenter.sh/nodepool", "Karpenter"},
      {"karpenter.sh/provisioner-name", "Karpenter"},
      {"cloud.google.com/gke-accelerator", "cluster-autoscaler"},
      {"k8s.amazonaws.com/accelerator", "cluster-autoscaler"},
      {"kubernetes.azure.com/accelerator", "cluster-autoscaler"}};
  for (const auto& [label, autoscaler] : kMarks)
    if (node.meta.labels.contains(label)) return autoscaler;
  return {};
}

// Node Feature Discovery leaves its annotations and labels on each node that it serves.
bool nfd_serves(const Node& node) {
  const auto from_nfd = [](const auto& entry) {
    const std::string_view key = entry.key.view();
    return key.find("nfd.node.kubernetes.io/") != std::string_view::npos || key.starts_with(kFeaturePrefix);
  };
  const auto& meta = node.meta;
  return meta.labels.contains(kGpuCount) || meta.labels.contains(kMpsCapable) ||
         std::any_of(meta.annotations.begin(), meta.annotations.end(), from_nfd) ||
         std::any_of(meta.labels.begin(), meta.labels.end(), from_nfd);
}

// An invalid profile has no revision of its own. Two keys with the same text have the same revision, but messages name
// the key.
void add_profile(const Setup& setup, Identity& out) {
  if (setup.profile == nullptr) {
    out << setup.key.error;
    return;
  }
  out << setup.key.key << setup.profile->valid;
  if (!setup.profile->valid) {
    out << setup.profile->error;
    return;
  }
  out << setup.profile->revision;
  if (setup.profile->overridden.empty()) return;
  for (const Diagnostic& d : setup.profile->parsed.diagnostics) out << d.path;
}

void add_start(const Setup& setup, Identity& out) {
  out << (setup.start != nullptr);
  if (setup.start == nullptr) return;
  const bool valid = setup.start_profile != nullptr && setup.start_profile->valid;
  out << valid;
  if (valid) return;
  out << setup.start->key << (setup.start_profile == nullptr ? setup.start->error : setup.start_profile->error);
}

// Unused answers are removed when the cache has twice as many as after the last sweep, and at least this many.
constexpr std::size_t kLeastToSweep = 64;

}  // namespace

const Profile* Setup::valid_profile() const {
  return profile != nullptr && profile->valid ? &profile->profile() : nullptr;
}

bool Setup::wants_mps() const {
  const Profile* here = valid_profile();
  return here != nullptr && here->strategy() == Strategy::mps;
}

std::string_view Setup::mig_strategy() const {
  return plugin.mig_strategy.empty() ? std::string_view(valid_profile()->mig_strategy) : plugin.mig_strategy;
}

Profile Setup::effective_profile() const {
  Profile out = *valid_profile();
  out.mig_strategy = std::string(mig_strategy());
  return out;
}

std::string Setup::identity() const {
  if (gpus->devices) return {};
  const bool by_label = key.source == EffectiveKey::Source::label;
  Identity out;
  out << &installation << &plugin << gfd << mps << other_gfd << other_mps << standalone << config_map_exists;
  add_profile(*this, out);
  add_start(*this, out);
  out << label_mode << mps_signal_fixed << labelled << label_left << by_label
      << (by_label && key.key == plugin.default_key);
  out << gpus->product << (gpus->count > 1) << gpus->compute_major << gpus->compute_minor << gpus->mig_enabled;
  out << gpus->mig_counts.size();
  for (const auto& [resource, count] : gpus->mig_counts) out << resource;
  out << autoscaler << mps_capable.has_value() << mps_capable.value_or("") << nfd_serves << nfd_owns_mps_capable;
  out << gpus->problem;
  return out.take();
}

void describe_node(const Node& node, const GpuFacts& facts, const std::vector<Operand>& strays, Setup& setup) {
  setup.other_gfd = find_operand(strays, Component::gfd, node);
  setup.other_mps = find_operand(strays, Component::mps, node);
  if (setup.other_mps != nullptr && setup.other_mps->key.ns != setup.installation.ns) setup.other_mps = nullptr;
  setup.labelled = !node.meta.labels.get(setup.plugin.node_label).value_or("").empty();
  setup.gpus = &facts;
  setup.autoscaler = autoscaler_of(node);
  setup.mps_capable = node.meta.labels.get(kMpsCapable);
  setup.nfd_serves = nfd_serves(node);
  setup.nfd_owns_mps_capable = setup.gfd == nullptr && nfd_owns(node, kMpsCapable);
}

// --- Preflight.

std::vector<Diagnostic> run_preflight(const Setup& setup) {
  std::vector<Diagnostic> found;
  for (const Check& check : checks()) {
    if (!check.listed || check.of_setup == nullptr) continue;
    for (Complaint& complaint : check.of_setup(setup)) {
      found.push_back({complaint.severity.value_or(check.severity),
                       std::string(check.code),
                       std::move(complaint.path),
                       {},
                       std::move(complaint.message),
                       std::move(complaint.key),
                       std::move(complaint.brief)});
    }
  }
  return found;
}

PreflightCache::Answer PreflightCache::check(const Setup& setup) {
  std::string identity = setup.identity();
  if (identity.empty()) return std::make_shared<const std::vector<Diagnostic>>(run_preflight(setup));
  if (const auto kept = answers_.find(identity); kept != answers_.end()) {
    if (Answer answer = kept->second.lock()) return answer;
  }
  if (answers_.size() >= std::max(sweep_at_, kLeastToSweep)) {
    std::erase_if(answers_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * answers_.size();
  }
  Answer answer = std::make_shared<const std::vector<Diagnostic>>(run_preflight(setup));
  answers_.insert_or_assign(std::move(identity), answer);
  return answer;
}

}  // namespace gso
