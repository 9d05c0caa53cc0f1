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

// "4 CPUs and 512 MiB of memory": what the pod asks for of a node beside its GPUs.
std::string describe_needs(const PodNeeds& needs) {
  constexpr std::int64_t kMiB = 1 << 20;
  std::string out;
  if (needs.cpu > 0) out = fmt::format("{} CPUs", static_cast<double>(needs.cpu) / 1000);
  if (needs.memory > 0)
    out += fmt::format("{}{} MiB of memory", out.empty() ? "" : " and ", (needs.memory + kMiB - 1) / kMiB);
  return out.empty() ? "a place for one more pod" : out;
}

// "10 GiB", "2 x 10 GiB": what the pod asks for.
std::string describe_need(const SlicePod& pod) {
  if (pod.slices.size() == 1) return fmt::format("{} GiB", pod.slices[0]);
  return describe(slices_of(pod));
}

// The slices in use that would have to end so that a pod fits on a node.
struct Alternative {
  const PartitionedNode* node = nullptr;
  SliceCounts used;
};

// The slices in use that the pod's would take the place of on the node, each size a second time beside the size that is
// free; nullopt: the pod would not fit even then.
std::optional<SliceCounts> slices_to_end(const PartitionedNode& node, const SlicePlan& plan, std::size_t index,
                                         const SlicePod& pod) {
  std::set<std::int64_t> known(plan.sizes.begin(), plan.sizes.end());
  for (const auto& [gigabytes, count] : total_of(node.slices.used())) known.insert(gigabytes);
  std::vector<std::int64_t> sizes;
  for (const std::int64_t gigabytes : known) sizes.insert(sizes.end(), 2, gigabytes);
  const auto at = [&](std::int64_t gigabytes) {
    return static_cast<std::size_t>(std::ranges::lower_bound(sizes, gigabytes) - sizes.begin());
  };
  const auto add = [&](const SliceCounts& slices, SizeCounts& out) {
    for (const auto& [gigabytes, count] : slices)
      if (known.contains(gigabytes)) out[at(gigabytes)] += static_cast<std::int32_t>(count);
  };
  PackNode packed{{}, SizeCounts(sizes.size()), SizeCounts(sizes.size()), true, false};
  for (std::size_t t = 0; t < plan.sizes.size(); ++t) packed.taken[at(plan.sizes[t])] = plan.demand[index][t];
  add(node.taken(), packed.taken);
  add(node.just_bound, packed.just_taken);
  for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
    PackGpu gpu{plan.packing[index].rooms[g], SizeCounts(sizes.size())};
    for (std::size_t t = 0; t < plan.sizes.size(); ++t) gpu.free[at(plan.sizes[t])] = plan.packing[index].free[g][t];
    for (const auto& [gigabytes, count] : node.slices.gpus[g].used)
      gpu.free[at(gigabytes) + 1] = static_cast<std::int32_t>(count);
    packed.gpus.push_back(std::move(gpu));
  }
  const std::vector<std::int64_t> wanted(pod.slices.begin(), pod.slices.end());
  const auto answer = pack_node(sizes, packed, counts_of(sizes, wanted));
  if (!answer) return std::nullopt;
  SliceCounts out;
  for (std::size_t g = 0; g < packed.gpus.size(); ++g)
    for (std::size_t t = 1; t < sizes.size(); t += 2)
      add_slices(out, sizes[t], packed.gpus[g].free[t] - answer->free[g][t]);
  return out;
}

// "held by pods a/x, b/y": those on the node that use slices of these sizes.
std::string describe_holders(const PartitionedNode& node, const SliceCounts& used) {
  std::vector<std::string> names;
  for (const SlicePod* pod : node.pods)
    if (std::ranges::any_of(pod->slices, [&](std::int64_t size) { return used.contains(size); }))
      names.push_back(name_of(*pod));
  if (names.empty()) return "used by processes of no known pod";
  return fmt::format("held by {} {}", names.size() == 1 ? "pod" : "pods", first_names(names));
}

class Reporter {
 public:
  Reporter(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const SlicePlan& plan)
      : draft_(draft), nodes_(nodes), plan_(plan) {}

  void report(const std::vector<PodToPlace>& pods) {
    std::vector<Kind> kinds;
    std::set<Kind> waiting;
    for (std::size_t p = 0; p < pods.size(); ++p) {
      const SlicePod& pod = *pods[p].pod;
      kinds.push_back(
          {{pod.slices.begin(), pod.slices.end()}, admission_signature(pod), pods[p].refused_by, pods[p].cut_for});
      if (!plan_.node_of[p]) waiting.insert(kinds.back());
    }
    most_of_kind_ = std::max<std::size_t>(kMostHypotheses / std::max<std::size_t>(waiting.size(), 1), 1);
    for (std::size_t p = 0; p < pods.size(); ++p)
      if (plan_.node_of[p])
        report_place(pods[p], nodes_[*plan_.node_of[p]], p < plan_.compared);
      else if (p < plan_.planned)
        report_none(pods[p], kinds[p]);
      else
        report_unavailable(*pods[p].pod,
                           "it is not planned for before pods that come first: too many of different "
                           "needs wait at once");
  }

 private:
  // Bounds the work of a pass; pods that are alike share one answer.
  static constexpr std::size_t kMostHypotheses = 4000;
  struct Kind {
    std::vector<std::int64_t> slices;
    std::string admission;
    std::set<std::size_t> refused_by;
    std::set<std::size_t> cut_for;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };

  void report_unavailable(const SlicePod& pod, std::string_view why) {
    draft_.event(pod_ref(pod.meta), true, kSliceUnavailable, kAction,
                 fmt::format("needs {} of GPU memory; {}", describe_need(pod), why));
  }

  // `compared`: with all other nodes.
  void report_place(const PodToPlace& placed, const PartitionedNode& node, bool compared) {
    const std::string refusals = describe_refusals(placed);
    draft_.event(pod_ref(placed.pod->meta), false, kSlicePlanned, kAction,
                 fmt::format("needs {} of GPU memory: planned on node {}{}{}{}", describe_need(*placed.pod), node.name,
                             compared ? ""
                                      : " (the first that was found: with so many pods of different needs, not all "
                                        "nodes are compared)",
                             refusals.empty() ? "" : "; ", refusals));
  }

  void report_none(const PodToPlace& unplaced, const Kind& kind) {
    const auto [at, is_new] = answers_.try_emplace(kind);
    if (is_new) at->second = find_why(unplaced);
    const std::string& why = at->second;
    if (why.empty()) return;  // A node has the memory as soon as its move is over.
    report_unavailable(*unplaced.pod, why);
  }

  // "node n1 has free slices, but ..."; empty: no node is refused.
  [[nodiscard]] std::string describe_refusals(const PodToPlace& pod) const {
    if (pod.refused_by.empty()) return {};
    return fmt::format(
        "the scheduler does not bind it to {}, where slices were free for it: kubectl describe pod says "
        "why",
        names_of(pod.refused_by));
  }

  // "node n1", "nodes n1, n2".
  [[nodiscard]] std::string names_of(const std::set<std::size_t>& nodes) const {
    std::vector<std::string> names;
    for (const std::size_t n : nodes) names.push_back(nodes_[n].name);
    return fmt::format("{} {}", names.size() == 1 ? "node" : "nodes", first_names(names));
  }

  std::string find_why(const PodToPlace& unplaced) {
    const SlicePod& pod = *unplaced.pod;
    const Admission admission(pod);
    std::optional<Alternative> nearest;
    std::size_t admitting = 0;
    std::size_t crowded = 0;
    const PartitionedNode* left_alone = nullptr;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const PartitionedNode& node = nodes_[n];
      if (!unplaced.can_be_on(n) || !admission.follows_rules(*node.node)) continue;
      if (!node.standing.serves) {
        if (left_alone == nullptr && node.left_alone) left_alone = &node;
        continue;
      }
      if (!node.has_room_for(pod)) {
        ++crowded;
        continue;
      }
      if (admitting++ >= most_of_kind_) continue;
      const auto used = slices_to_end(node, plan_, n, pod);
      if (used && (!nearest || gigabytes_of(*used) < gigabytes_of(nearest->used))) nearest = Alternative{&node, *used};
    }
    std::string why;
    if (nearest)
      why = describe_alternative(*nearest);
    else if (admitting > 0)
      why = describe_too_small(admitting);
    else if (crowded > 0)
      why = describe_crowded(crowded, pod);
    else if (unplaced.is_limited())
      why = fmt::format("{} were cut for it within an hour, and no other node is cut before that hour is over",
                        names_of(unplaced.cut_for));
    else if (left_alone != nullptr)
      why = describe_left_alone(*left_alone);
    else if (unplaced.refused_by.empty())
      why = describe_unadmitted();
    if (unplaced.refused_by.empty() || (nearest && why.empty())) return why;
    return fmt::format("{}{}{}", why, why.empty() ? "" : "; ", describe_refusals(unplaced));
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

  [[nodiscard]] std::string describe_too_small(std::size_t admitting) const {
    if (most_of_kind_ < admitting)
      return fmt::format("none of the first {} of {} nodes that admit it could free enough", most_of_kind_, admitting);
    return "the nodes that admit it are too small, or their memory is planned for pods that come first";
  }

  [[nodiscard]] static std::string describe_alternative(const Alternative& nearest) {
    const PartitionedNode& node = *nearest.node;
    const bool moves = node.standing.moves;
    const std::string why = moves ? std::string() : node.standing.why;
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
  const SlicePlan& plan_;
  std::map<Kind, std::string> answers_;
  std::size_t most_of_kind_ = 1;  // Nodes that are asked for the nearest alternative of one kind of pod.
};

}  // namespace

void report_refused(PlanDraft& draft, const std::vector<const SlicePod*>& pods) {
  for (const SlicePod* pod : pods) {
    const std::string why = describe_refusal(*pod, draft.s.settings.partitioning.mps_user);
    draft.finding(Severity::warning, pod_ref(pod->meta), kSliceRequestRefused,
                  fmt::format("pod {}: {}", name_of(*pod), why));
    draft.event(pod_ref(pod->meta), true, kSliceRequestRefused, kAction, why);
  }
}

void report_other_lacks(PlanDraft& draft, const std::vector<const SlicePod*>& pods) {
  for (const SlicePod* pod : pods) {
    draft.event(
        pod_ref(pod->meta), true, kSliceUnavailable, kAction,
        fmt::format("needs {} of GPU memory, and no GPU is cut for it: by the scheduler's message no node lacks "
                    "only a slice. kubectl describe pod says what it lacks",
                    describe_need(*pod)));
  }
}

std::string describe_left_alone(const PartitionedNode& node) {
  return fmt::format("the GPUs of node {} are not partitioned: {}", node.name, node.left_alone->message);
}

void report_too_large(PlanDraft& draft, const std::vector<const SlicePod*>& pods, std::int64_t largest) {
  for (const SlicePod* pod : pods) {
    const std::string why = fmt::format(
        "needs {} of GPU memory, and no node that is labelled for partitioning could ever hold that: {}",
        describe_need(*pod),
        largest > 0 ? fmt::format("its largest GPU has room for {} GiB of slices in total, beside the {} MiB "
                                  "that are kept for the driver and the MPS server (setting "
                                  "partitioning-reserved-mib)",
                                  largest, draft.s.settings.partitioning.reserved_mib)
                    : "its GPUs cannot be divided: they are older than Volta, or MIG is enabled");
    draft.finding(Severity::warning, pod_ref(pod->meta), kSliceTooLarge, fmt::format("pod {} {}", name_of(*pod), why));
    draft.event(pod_ref(pod->meta), true, kSliceTooLarge, kAction, why);
  }
}

void report_planned(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                    const SlicePlan& plan) {
  Reporter(draft, nodes, plan).report(pods);
}

}  // namespace gso
