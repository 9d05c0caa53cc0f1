#include "reconcilers/partitioning/slice_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

constexpr std::string_view kAction = "Partition";

std::string name_of(const SlicePod& pod) {
  return k8s::to_string(pod.meta.key());
}

// The slices in use that would have to end so that a pod fits on a node.
struct Alternative {
  std::size_t node = 0;
  SliceCounts used;
};

// A node whose used slices could be given up as well, each size a second time beside the size that is free.
class Hypothesis {
 public:
  Hypothesis(const PartitionedNode& node, const SlicePlan& plan, std::size_t index, const SlicePod& pod) : node_(node) {
    std::set<std::int64_t> known(plan.sizes.begin(), plan.sizes.end());
    for (const auto& [gigabytes, count] : total_of(node.slices.used())) known.insert(gigabytes);
    for (const std::int64_t gigabytes : known) sizes_.insert(sizes_.end(), 2, gigabytes);
    const auto at = [&](std::int64_t gigabytes) {
      return static_cast<std::size_t>(std::ranges::lower_bound(sizes_, gigabytes) - sizes_.begin());
    };
    packed_.taken.resize(sizes_.size());
    packed_.just_taken.resize(sizes_.size());
    packed_.changeable = true;
    for (std::size_t t = 0; t < plan.sizes.size(); ++t) {
      packed_.taken[at(plan.sizes[t])] = plan.demand[index][t];
    }
    for (const auto& [gigabytes, count] : node.taken()) {
      if (known.contains(gigabytes)) packed_.taken[at(gigabytes)] += static_cast<std::int32_t>(count);
    }
    for (const auto& [gigabytes, count] : node.just_bound) {
      if (known.contains(gigabytes)) packed_.just_taken[at(gigabytes)] = static_cast<std::int32_t>(count);
    }
    for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
      PackGpu gpu{plan.packing[index].rooms[g], SizeCounts(sizes_.size())};
      for (std::size_t t = 0; t < plan.sizes.size(); ++t) gpu.free[at(plan.sizes[t])] = plan.packing[index].free[g][t];
      for (const auto& [gigabytes, count] : node.slices.gpus[g].used)
        gpu.free[at(gigabytes) + 1] = static_cast<std::int32_t>(count);
      packed_.gpus.push_back(std::move(gpu));
    }
    demand_.resize(sizes_.size());
    for (const std::int64_t gigabytes : pod.slices) ++demand_[at(gigabytes)];
  }

  // nullopt: the pod would not fit even then.
  [[nodiscard]] std::optional<SliceCounts> given_up() const {
    const auto answer = pack_node(sizes_, packed_, demand_);
    if (!answer) return std::nullopt;
    SliceCounts out;
    for (std::size_t g = 0; g < packed_.gpus.size(); ++g) {
      for (std::size_t t = 1; t < sizes_.size(); t += 2)
        add_slices(out, sizes_[t], packed_.gpus[g].free[t] - answer->free[g][t]);
    }
    return out;
  }

 private:
  const PartitionedNode& node_;
  std::vector<std::int64_t> sizes_;
  PackNode packed_;
  SizeCounts demand_;
};

// "held by pods a/x, b/y": those on the node that use slices of these sizes.
std::string describe_holders(const PartitionedNode& node, const SliceCounts& used) {
  constexpr std::size_t kMostNames = 5;
  std::string names;
  std::size_t count = 0;
  for (const SlicePod* pod : node.pods) {
    const bool holds = std::ranges::any_of(pod->slices, [&](std::int64_t size) { return used.contains(size); });
    if (holds && ++count <= kMostNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(*pod));
  }
  if (count == 0) return "used by processes of no known pod";
  if (count > kMostNames) names += fmt::format(" and {} more", count - kMostNames);
  return fmt::format("held by {} {}", count == 1 ? "pod" : "pods", names);
}

class Reporter {
 public:
  Reporter(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<NodeStanding>& standings,
           const SlicePlan& plan)
      : draft_(draft), nodes_(nodes), standings_(standings), plan_(plan) {}

  // `refused`: by pod.
  void report(const std::vector<const SlicePod*>& pods, const RefusedPlaces& refused) {
    std::vector<Kind> kinds;
    std::set<Kind> waiting;
    for (std::size_t p = 0; p < pods.size(); ++p) {
      kinds.push_back({{pods[p]->slices.begin(), pods[p]->slices.end()}, admission_signature(*pods[p]), refused[p]});
      if (!plan_.node_of[p]) waiting.insert(kinds.back());
    }
    most_of_kind_ = std::max<std::size_t>(kMostHypotheses / std::max<std::size_t>(waiting.size(), 1), 1);
    for (std::size_t p = 0; p < pods.size(); ++p) {
      if (plan_.node_of[p]) {
        report_place(*pods[p], nodes_[*plan_.node_of[p]], kinds[p].refused);
      } else {
        report_none(*pods[p], kinds[p]);
      }
    }
  }

 private:
  // Bounds the work of a pass; pods that are alike share one answer.
  static constexpr std::size_t kMostHypotheses = 4000;
  struct Kind {
    std::vector<std::int64_t> slices;
    std::string admission;
    std::vector<std::size_t> refused;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };

  void report_place(const SlicePod& pod, const PartitionedNode& node, const std::vector<std::size_t>& refused) {
    draft_.event(pod_ref(pod.meta), false, kSlicePlanned, kAction,
                 fmt::format("needs {} of GPU memory: planned on node {}{}{}", describe_need(pod), node.name,
                             refused.empty() ? "" : "; ", describe_refusals(refused)));
  }

  void report_none(const SlicePod& pod, const Kind& kind) {
    const auto [at, is_new] = answers_.try_emplace(kind);
    if (is_new) at->second = find_why(pod, kind.refused);
    const std::string& why = at->second;
    if (why.empty()) return;  // A node has the memory as soon as its move is over.
    draft_.event(pod_ref(pod.meta), true, kSliceUnavailable, kAction,
                 fmt::format("needs {} of GPU memory; {}", describe_need(pod), why));
  }

  // "node n1 has free slices, but ..."; empty: no node is refused.
  [[nodiscard]] std::string describe_refusals(const std::vector<std::size_t>& refused) const {
    if (refused.empty()) return {};
    std::vector<std::string> names;
    for (const std::size_t n : refused) names.push_back(nodes_[n].name);
    return fmt::format(
        "the scheduler does not bind it to {} {}, where slices were free for it: kubectl describe pod says why",
        names.size() == 1 ? "node" : "nodes", first_names(names));
  }

  std::string find_why(const SlicePod& pod, const std::vector<std::size_t>& refused) {
    const Admission admission(pod);
    std::optional<Alternative> nearest;
    std::size_t admitting = 0;
    std::size_t crowded = 0;
    std::size_t asked = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const bool is_refused = std::ranges::binary_search(refused, n);
      if (is_refused || !standings_[n].serves || !admission.follows_rules(*nodes_[n].node)) continue;
      if (!nodes_[n].has_room_for(pod)) {
        ++crowded;
        continue;
      }
      ++admitting;
      if (asked == most_of_kind_) continue;
      ++asked;
      const auto used = Hypothesis(nodes_[n], plan_, n, pod).given_up();
      if (!used) continue;
      if (nearest && gigabytes_of(*used) >= gigabytes_of(nearest->used)) continue;
      nearest = Alternative{n, *used};
    }
    std::string why;
    if (nearest) {
      why = describe_alternative(*nearest);
    } else if (admitting > 0) {
      why = describe_too_small(asked, admitting);
    } else if (crowded > 0) {
      why = describe_crowded(crowded, pod);
    } else if (refused.empty()) {
      why = describe_unadmitted();
    }
    if (refused.empty() || (nearest && why.empty())) return why;
    return fmt::format("{}{}{}", why, why.empty() ? "" : "; ", describe_refusals(refused));
  }

  [[nodiscard]] static std::string describe_crowded(std::size_t nodes, const SlicePod& pod) {
    return fmt::format(
        "none of the nodes that admit it ({}) has {} left beside its pods of the same or a higher priority", nodes,
        describe_needs(pod.needs));
  }

  [[nodiscard]] std::string describe_unadmitted() const {
    constexpr std::string_view kTerms = "(Ready, not cordoned, node selector, affinity and taints)";
    if (nodes_.size() == 1)
      return fmt::format("the only node that is labelled for partitioning does not admit it {}", kTerms);
    return fmt::format("none of the {} nodes that are labelled for partitioning admits it {}", nodes_.size(), kTerms);
  }

  [[nodiscard]] static std::string describe_too_small(std::size_t asked, std::size_t admitting) {
    if (asked < admitting)
      return fmt::format("none of the first {} of {} nodes that admit it could free enough", asked, admitting);
    return "the nodes that admit it are too small, or their memory is planned for pods that come first";
  }

  [[nodiscard]] std::string describe_alternative(const Alternative& nearest) const {
    const PartitionedNode& node = nodes_[nearest.node];
    const bool moves = standings_[nearest.node].moves;
    const std::string why = moves ? std::string() : standings_[nearest.node].why;
    if (nearest.used.empty() && moves) return {};
    if (nearest.used.empty()) {
      return fmt::format("node {} has the memory, but {}", node.name,
                         why.empty() ? "pods that come first get it" : why);
    }
    return fmt::format("node {} could free {}; {}{}", node.name, describe(nearest.used),
                       describe_holders(node, nearest.used), why.empty() ? "" : fmt::format(" ({})", why));
  }

  PlanDraft& draft_;
  const std::vector<PartitionedNode>& nodes_;
  const std::vector<NodeStanding>& standings_;
  const SlicePlan& plan_;
  std::map<Kind, std::string> answers_;
  std::size_t most_of_kind_ = 1;  // Nodes that are asked for the nearest alternative of one kind of pod.
};

}  // namespace

void report_refused(PlanDraft& draft, const std::vector<const SlicePod*>& pods) {
  for (const SlicePod* pod : pods) {
    const std::string why = describe_refusal(*pod);
    draft.finding(Severity::warning, pod_ref(pod->meta), kSliceRequestRefused,
                  fmt::format("pod {}: {}", name_of(*pod), why));
    draft.event(pod_ref(pod->meta), true, kSliceRequestRefused, kAction, why);
  }
}

void report_too_large(PlanDraft& draft, const std::vector<const SlicePod*>& pods, std::int64_t largest) {
  for (const SlicePod* pod : pods) {
    const std::string why =
        fmt::format("needs {} of GPU memory, and no node that is labelled for partitioning could ever hold that: {}",
                    describe_need(*pod),
                    largest > 0 ? fmt::format("its largest GPU carries slices of {} GiB together", largest)
                                : "none has a GPU whose size is known");
    draft.finding(Severity::warning, pod_ref(pod->meta), kSliceTooLarge, fmt::format("pod {} {}", name_of(*pod), why));
    draft.event(pod_ref(pod->meta), true, kSliceTooLarge, kAction, why);
  }
}

void report_planned(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                    const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                    const RefusedPlaces& refused, const SlicePlan& plan) {
  Reporter(draft, nodes, standings, plan).report(pods, refused);
}

}  // namespace gso
