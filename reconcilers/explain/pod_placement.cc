// The scheduler's checks for every GPU node; the node that satisfies most of them determines the reported cause.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/node_match.h"
#include "reconcilers/cluster/release.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"

namespace gso {
namespace {

constexpr std::string_view kShared = ".shared";
constexpr std::size_t kMostNodes = 20;
constexpr std::size_t kNamed = 5;

// How many checks the pod passes on a node, in the order of the checks: a later stage is closer to running there.
enum class Stage {
  not_served,
  renamed,
  none_allocatable,
  too_few,
  selector,
  taint,
  not_ready,
  cordoned,
  refused,
  full,
  fits
};

struct Verdict {
  Stage stage = Stage::fits;
  std::string text;       // Follows the node's name.
  std::string resource;   // The resource that the stage concerns.
  std::int64_t most = 0;  // How much of it the node offers.
  // Its plugin allows one container one of it at most.
  bool singly = false;
  std::string what = {};  // The same as `text`, without its verb.
  const Taint* taint = nullptr;
  bool by_operator = false;  // The operator has cordoned the node.
};

std::int64_t amount(const ResourceCounts& counts, const Interned& resource) {
  const auto at = counts.find(resource);
  return at == counts.end() ? 0 : at->second;
}

// The other name of the resource: a profile with renameByDefault adds or removes the suffix.
std::string other_name(std::string_view resource) {
  if (resource.ends_with(kShared)) return std::string(resource.substr(0, resource.size() - kShared.size()));
  return std::string(resource) + std::string(kShared);
}

class NodeQuestions {
 public:
  NodeQuestions(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked)
      : snapshot_(snapshot), index_(index), asked_(asked) {}

  [[nodiscard]] Verdict ask(const Node& node) const {
    for (const auto& [resource, count] : asked_.pod.gpu_requests) {
      if (count <= 0) continue;
      if (auto verdict = offered(node, resource, count)) return *std::move(verdict);
    }
    if (auto verdict = admitted(node)) return *std::move(verdict);
    for (const auto& [resource, count] : asked_.pod.gpu_requests) {
      if (count <= 0) continue;
      if (auto verdict = free(node, resource, count)) return *std::move(verdict);
    }
    return {Stage::fits, "has room for the pod", "", 0};
  }

 private:
  [[nodiscard]] std::optional<Verdict> offered(const Node& node, const Interned& resource, std::int64_t count) const {
    const std::int64_t offers = amount(node.allocatable, resource);
    const std::string name(resource.view());
    if (offers >= count) return std::nullopt;
    if (offers > 0) {
      const bool singly = refuses_several(index_, node, name);
      return Verdict{Stage::too_few, fmt::format("has {} of {}", offers, name), name, offers, singly};
    }
    const std::string other = other_name(name);
    const std::int64_t others = amount(node.allocatable, Interned(other));
    if (others > 0) return Verdict{Stage::renamed, fmt::format("offers {} instead ({})", other, others), name, others};
    if (amount(node.capacity, resource) > 0) {
      return Verdict{Stage::none_allocatable, fmt::format("has {}, but none of it is allocatable", name), name, 0};
    }
    return Verdict{Stage::not_served, fmt::format("does not offer {}", name), name, 0};
  }

  [[nodiscard]] std::optional<Verdict> admitted(const Node& node) const {
    Operand selector = asked_.placement;
    selector.tolerations.assign(1, Toleration{{}, Interned("Exists"), {}, {}});
    for (const auto& [key, value] : selector.node_selector) {
      const auto actual = node.meta.labels.get(key);
      if (actual == value) continue;
      return Verdict{Stage::selector,
                     fmt::format("label {} is {}, the pod requires {}", key, actual ? *actual : "missing", value), key,
                     0};
    }
    if (selects(selector, node, false) == Selects::no) {
      return Verdict{Stage::selector, "the pod's node affinity does not select it", "", 0};
    }
    for (const Taint& taint : node.taints) {
      const bool keeps_off = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
      if (!keeps_off || taint.key.view().starts_with("node.kubernetes.io/") || tolerates(asked_.tolerations, taint))
        continue;
      const std::string written =
          taint.value.empty() ? fmt::format("{}:{}", taint.key.view(), taint.effect.view())
                              : fmt::format("{}={}:{}", taint.key.view(), taint.value.view(), taint.effect.view());
      return Verdict{Stage::taint, fmt::format("taint {} is not tolerated", written), "", 0, false, written, &taint};
    }
    if (!node.ready) return Verdict{Stage::not_ready, "is not Ready", "", 0};
    if (node.unschedulable) {
      Verdict cordoned{Stage::cordoned, "is cordoned", "", 0};
      cordoned.by_operator = is_cordoned_by_operator(node);
      if (cordoned.by_operator) cordoned.text += " by the operator while it is changed";
      return cordoned;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Verdict> free(const Node& node, const Interned& resource, std::int64_t count) const {
    const std::string name(resource.view());
    if (count > 1 && refuses_several(index_, node, name)) {
      const std::string what = fmt::format("more than one {} per container", name);
      return Verdict{Stage::refused, "refuses " + what, name, 1, false, what};
    }
    const auto listed = snapshot_.consumers.find(node.meta.name);
    if (listed == snapshot_.consumers.end()) return std::nullopt;
    std::int64_t used = 0;
    for (const Pod& other : listed->second.pods) {
      if (other.meta.uid != asked_.pod.meta.uid) used += amount(other.gpu_requests, resource);
    }
    const std::int64_t offers = amount(node.allocatable, resource);
    if (offers - used >= count) return std::nullopt;
    return Verdict{Stage::full, fmt::format("{} of {} {} are in use", used, offers, name), name, offers - used};
  }

  const Snapshot& snapshot_;
  const FleetIndex& index_;
  const AskedPod& asked_;
};

std::string named(const std::vector<std::string>& nodes) {
  const std::vector<std::string> first(nodes.begin(),
                                       nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kNamed)));
  return fmt::format("{}{}", fmt::join(first, ", "), nodes.size() > kNamed ? ", …" : "");
}

std::string_view code_of(Stage stage) {
  static constexpr std::array<std::string_view, 11> kCodes{
      "NotServed", "Renamed",  "NoneAllocatable", "TooFew",   "NotSelected",    "NotTolerated",
      "NotReady",  "Cordoned", "RequestRefused",  "AllInUse", "NotScheduledYet"};
  return kCodes[static_cast<std::size_t>(stage)];
}

struct Closest {
  Verdict best;
  std::vector<std::string> nodes;  // The nodes that reach this stage.
};

std::string where_of(const Closest& c) {
  return c.nodes.size() == 1 ? fmt::format("one node ({})", c.nodes.front())
                             : fmt::format("{} nodes ({})", c.nodes.size(), named(c.nodes));
}

std::string text_of(const Closest& c) {
  const bool one = c.nodes.size() == 1;
  const std::string where = where_of(c);
  const Verdict& v = c.best;
  switch (v.stage) {
    case Stage::not_served:
      return fmt::format("no node offers {}: no device plugin serves it, or it has another name", v.resource);
    case Stage::renamed:
      return fmt::format("{} {} {} and not {}: renameByDefault determines the name of shared resources", where,
                         one ? "offers" : "offer", other_name(v.resource), v.resource);
    case Stage::none_allocatable:
      return fmt::format("{} {} {}, but none of it is allocatable now", where, one ? "has" : "have", v.resource);
    case Stage::too_few:
      return fmt::format("the pod requests more {} than any node has: the maximum is {}", v.resource, v.most);
    case Stage::selector:
      return fmt::format("the pod selects none of the nodes with enough GPUs: {} {} most conditions, but {}", where,
                         one ? "satisfies" : "satisfy", v.text);
    case Stage::taint:
      return fmt::format("the pod does not tolerate a taint of {}: {}", where, v.what);
    case Stage::not_ready:
      return fmt::format("{} {} suitable but not Ready", where, one ? "is" : "are");
    case Stage::cordoned:
      return fmt::format("{} {} suitable but cordoned{}", where, one ? "is" : "are",
                         !v.by_operator ? ""
                         : one          ? " by the operator while it is changed"
                                        : " by the operator while they are changed");
    case Stage::refused:
      return fmt::format(
          "{} {}: the kubelet would reject the pod there",
          one ? fmt::format("the plugin of {} refuses", where) : fmt::format("the plugins of {} refuse", where),
          v.what);
    case Stage::full:
      return fmt::format("{} {} suitable but full: {}{}", where, one ? "is" : "are", one ? "" : "on the first one, ",
                         v.text);
    case Stage::fits:
      break;
  }
  return fmt::format("{} {} room for the pod, but its scheduler has not placed it (yet)", where, one ? "has" : "have");
}

// The command that gives the node the labels that the pod requires.
std::string label_command(const AskedPod& asked, const std::string& node, const std::string& label) {
  for (const auto& [key, value] : asked.placement.node_selector) {
    if (key == label) return fmt::format("kubectl label node {} {}={} --overwrite", node, key, value);
  }
  return fmt::format("kubectl get nodes --label-columns {}", label);
}

std::string command_of(const AskedPod& asked, const Closest& c) {
  const std::string& node = c.nodes.front();
  const auto& [stage, text, resource, most, singly, what, taint, by_operator] = c.best;
  const std::int64_t asks = resource.empty() ? 0 : amount(asked.pod.gpu_requests, Interned(resource));
  switch (stage) {
    case Stage::not_served:
      return "gpu-sharing-operator status";
    case Stage::renamed:
      return ask_for(asked, other_name(resource), std::min(asks, most), resource);
    case Stage::too_few:
      return ask_for(asked, resource, singly ? 1 : most, resource);
    case Stage::refused:
      return ask_for(asked, resource, most, resource);
    case Stage::none_allocatable:
      return fmt::format("gpu-sharing-operator explain {}", node);
    case Stage::selector:
      return resource.empty() ? "kubectl get nodes --show-labels" : label_command(asked, node, resource);
    case Stage::taint:
      return tolerate(asked, *taint);
    case Stage::not_ready:
      return fmt::format("kubectl describe node {}", node);
    case Stage::cordoned:
      return by_operator ? "gpu-sharing-operator rollout status" : fmt::format("kubectl uncordon {}", node);
    case Stage::full:
      return fmt::format("gpu-sharing-operator explain {}", node);
    case Stage::fits:
      break;
  }
  return {};
}

}  // namespace

bool refuses_several(const FleetIndex& index, const Node& node, std::string_view resource) {
  const NodeAssessment* a = index.assessment(node.meta.name);
  if (a == nullptr || a->profile == nullptr) return false;
  const Operand* plugin = index.impl().installation_of(*a).find(Component::plugin, node);
  const std::string original = resource.ends_with(kShared) ? other_name(resource) : std::string(resource);
  return plugin != nullptr && request_refusal(a->profile->profile(), plugin->version, original, 2).has_value();
}

void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked, PodExplanation& out) {
  const NodeQuestions questions(snapshot, index, asked);
  std::map<std::string, const Node*> nodes;
  for (const auto& [key, node] : snapshot.world.nodes.all()) {
    if (has_gpus(*node) || index.assessment(key.name) != nullptr) nodes.emplace(key.name, node.get());
  }
  std::optional<Closest> closest;
  for (const auto& [name, node] : nodes) {
    Verdict verdict = questions.ask(*node);
    if (out.nodes.size() < kMostNodes) out.nodes.push_back({name, verdict.text});
    const bool closer = !closest || verdict.stage > closest->best.stage ||
                        (verdict.stage == closest->best.stage && verdict.most > closest->best.most);
    const bool as_far = closest && verdict.stage == closest->best.stage;
    if (closer) {
      if (!as_far) closest.emplace();
      closest->best = std::move(verdict);
    }
    if (closer || as_far) closest->nodes.push_back(name);
  }
  if (!closest) {
    out.causes.push_back({Severity::error, "NoGPUNodes", "no node of the cluster has GPUs that a device plugin serves",
                          "gpu-sharing-operator status"});
    return;
  }
  if (auto unseen = unseen_by_schedulers(snapshot, asked)) {
    out.causes.push_back(*std::move(unseen));
    if (closest->best.stage == Stage::fits) return;
  }
  if (closest->best.stage == Stage::fits) {
    out.causes.push_back(not_placed(asked, text_of(*closest), where_of(*closest), closest->nodes.front()));
    return;
  }
  out.causes.push_back(
      {Severity::error, std::string(code_of(closest->best.stage)), text_of(*closest), command_of(asked, *closest)});
}

}  // namespace gso
