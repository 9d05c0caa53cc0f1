// pod.reservation-gc. A stale reservation holds a GPU at the kubelet while KAI counts it as free; deleting a live one
// makes KAI delete its consumers. Deletions therefore depend on timers, and if any condition is in doubt the pod is
// kept and a finding says why.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"

namespace gso {

using namespace kai;

namespace {

// How long the result of a lookup counts, in sweeps.
constexpr int kUsableSweeps = 4;

class Collector {
 public:
  explicit Collector(KaiPass& pass)
      : pass_(pass),
        world_(pass.s.world),
        kai_(pass.s.world.kai),
        index_(pass.kai),
        view_(pass.kai.view()),
        settings_(pass.s.settings.kai),
        claims_(device_claims(index_)) {}

  void run() {
    if (settings_.gc_mode == KaiGcMode::off) return;
    report_foreign_pods();
    for (const std::string& group : index_.attention()) look_at(group);
    if (settings_.explain_all) explain_healthy();
    if (!by_node_.empty()) act();
  }

 private:
  struct Candidate {
    Judgement judgement = {};
    WallTime since{};
    bool ready = false;
    bool node_gone = false;
  };

  void report(const KaiPod& pod, Severity severity, std::string_view reason, std::string message) {
    pass_.finding(severity, pod_ref(pod.meta), reason, std::move(message));
  }

  // --- Pods that look like reservations but that the operator must not delete.
  void report_foreign_pods() {
    for (const KaiPod* pod : alive(index_.unlabelled())) {
      report(*pod, Severity::warning, "KAILostGroupLabel",
             fmt::format("a reservation without the label {}: KAI does not see it, and it {}. Kept: its group is "
                         "unknown. Delete it manually once no pod uses that GPU",
                         kGroupLabel,
                         pod->node_name.empty() ? std::string("is on no node yet")
                                                : fmt::format("holds a GPU of node {}", pod->node_name.view())));
    }
    for (const KaiPod* pod : alive(index_.leftovers())) {
      const std::string_view group = pod->meta.labels.get(kGroupLabel).value_or("");
      report(*pod, Severity::warning, "KAILeftover",
             pod->meta.ns.view() == view_.reservations
                 ? fmt::format("a pod of group {} in the reservation namespace without the label {}={}, probably "
                               "created before that label changed: KAI's binder uses it as a reservation, its "
                               "scheduler does not. Kept: the operator deletes only pods with that label",
                               group, kAppLabel, view_.app_label)
                 : fmt::format("looks like a reservation, but kai-config names the namespace {}. Kept: the operator "
                               "deletes only pods there. KAI counts it as a consumer of group {}",
                               view_.reservations, group));
    }
  }

  [[nodiscard]] std::vector<const KaiPod*> alive(const std::set<ObjectKey>& keys) const {
    std::vector<const KaiPod*> out;
    for (const ObjectKey& key : keys) {
      const KaiPod* pod = kai_.pods.find(key);
      if (pod != nullptr && is_alive(*pod)) out.push_back(pod);
    }
    return out;
  }

  void explain_healthy() {
    for (const auto& [name, group] : index_.groups()) {
      if (index_.attention().contains(name)) continue;
      const GroupFacts facts = group_facts(kai_, index_, name);
      for (const Judgement& j : judge(facts, claims_).reservations)
        report(*j.reservation, j.severity, j.why.code, j.why.message);
    }
  }

  // --- One group.
  // Lookups are repeated once per sweep, and their results count for several sweeps, because a slow server can delay
  // many lookups. No pod is deleted because of such a result alone: the executor reads everything again before a
  // deletion.
  [[nodiscard]] bool usable(MonoTime at) const { return pass_.s.mono - at < kUsableSweeps * settings_.sweep; }
  [[nodiscard]] bool due(MonoTime at) const { return pass_.s.mono - at >= settings_.sweep; }
  // True if the lookup is due now; otherwise requests a pass for the time when it is due.
  bool ask_again(MonoTime at) {
    if (due(at)) return true;
    pass_.look_again_in(std::max<Duration>(settings_.sweep - (pass_.s.mono - at), settings_.sweep / 10));
    return false;
  }

  void look_at(const std::string& group) {
    const GroupFacts facts = group_facts(kai_, index_, group);
    if (facts.reservations.empty()) return;  // plan_reservation_audit reports these.
    GroupJudgement judged = judge(facts, claims_);
    const bool decides =
        std::ranges::any_of(judged.reservations, [](const Judgement& j) { return j.state != GcVerdict::keep; });
    const bool listed = (decides || explains_more(facts) || rests_on_answer(facts)) && is_listed(group);
    const bool renewed = renew_lookups(facts, judged.wants);
    // Multi-device consumers are in no watch: nothing is concluded before they have been listed.
    const bool known = !decides || (listed && renewed);
    for (Judgement& j : judged.reservations) {
      if (j.state == GcVerdict::keep) {
        report_kept(j);
      } else if (!known) {
        report(*j.reservation, Severity::info, "KAILooking",
               fmt::format("kept: pods labelled {}{} are being listed", kGroupPrefix, group));
      } else {
        consider(group, std::move(j));
      }
    }
    pass_.plan.kai_wanted.merge(std::move(judged.wants));
    if (decides || !pass_.plan.kai_wanted.empty()) pass_.look_again_in(settings_.sweep);
  }

  // If a BindRequest protects a healthy reservation, its consumers would not change the result, and would cost a list
  // of all pods.
  [[nodiscard]] static bool explains_more(const GroupFacts& facts) {
    if (facts.reservations.size() != 1) return true;
    const KaiPod& pod = *facts.reservations.front();
    const bool sound = pod.phase == "Running" && !pod.meta.deletion_timestamp &&
                       !pod.meta.annotations.get(kDeviceAnnotation).value_or("").empty();
    return !sound || std::ranges::any_of(facts.requests, [&](const BindRequest* request) {
      return request->phase == "Succeeded" && request->selected_node != pod.node_name;
    });
  }

  // Only an earlier answer keeps the reservation; or that answer found no live pod, and must be renewed because a
  // BindRequest has come since.
  [[nodiscard]] bool rests_on_answer(const GroupFacts& facts) const {
    auto it = kai_.lookups.groups.find(facts.group);
    return it != kai_.lookups.groups.end() &&
           (facts.requests.empty() || std::ranges::none_of(it->second.pods, is_alive));
  }

  // Whether the group's multi-device consumers are known; asks for them when they are not, or not lately.
  bool is_listed(const std::string& group) {
    const auto listed = kai_.lookups.groups.find(group);
    const bool there = listed != kai_.lookups.groups.end();
    if (!there || ask_again(listed->second.at)) wanted_groups_.insert(group);
    return there && usable(listed->second.at);
  }

  // What else the judgement rests on must not be old either.
  bool renew_lookups(const GroupFacts& facts, KaiWants& wants) {
    bool fresh = true;
    for (const BindRequest* request : facts.requests) {
      const ObjectKey pod{std::string(request->meta.ns.view()), request->pod_name};
      auto it = kai_.lookups.pods.find(pod);
      if (it == kai_.lookups.pods.end()) continue;
      if (ask_again(it->second.at)) wants.pods.insert(pod);
      fresh = fresh && usable(it->second.at);
    }
    // Evidence that is not renewed would be dropped, and the grace period would start again.
    std::erase_if(wants.config_maps, [&](const ObjectKey& key) {
      auto it = kai_.lookups.config_maps.find(key);
      if (it == kai_.lookups.config_maps.end()) return false;
      fresh = fresh && usable(it->second.at);
      return !ask_again(it->second.at);
    });
    return fresh;
  }

  void report_kept(const Judgement& j) {
    const KaiPod& pod = *j.reservation;
    const bool unannotated = j.why.code == "KAIConsumersAlive" && !pod.meta.annotations.contains(kDeviceAnnotation);
    if (unannotated && pass_.s.now - pod.meta.creation_timestamp > view_.bind_timeout) {
      report(pod, Severity::error, "KAIReservationUnannotated",
             fmt::format("{}; but the reservation has no annotation {}{}: new pods of this group fail with \"failed to "
                         "find annotation\". Check the log and the RuntimeClass of the reservation",
                         j.why.message, kDeviceAnnotation,
                         pod.waiting_reason.empty() ? std::string()
                                                    : fmt::format(" (container: {})", pod.waiting_reason.view())));
      return;
    }
    const bool suspicious = j.why.code == "KAIDuplicateUnproven" || j.why.code == "KAISuspectConsumer";
    // A bind in progress might look like this for a moment.
    const bool young = pass_.s.now - pod.meta.creation_timestamp < view_.bind_timeout;
    report(pod, suspicious && young ? Severity::info : j.severity, j.why.code, "kept: " + j.why.message);
  }

  // --- One reservation without consumers.
  void consider(const std::string& group, Judgement j) {
    const KaiPod& pod = *j.reservation;
    Candidate candidate{.node_gone = !pod.node_name.empty() && world_.nodes.find(pod.node_name.view()) == nullptr};
    const TimerKey timer{j.state == GcVerdict::orphan ? Timer::kai_orphan : Timer::kai_duplicate, pod.meta.uid.str(),
                         fmt::format("{}/{}", group, index_.activity(group))};
    const bool held = pass_.held_for(timer, view_.grace);
    candidate.since = pass_.since(timer);
    const std::string why = j.why.message;
    candidate.judgement = std::move(j);
    if (pod.meta.deletion_timestamp && !candidate.node_gone)
      return report(pod, Severity::info, "KAIDeletionUnderWay", why + "; it is being deleted");
    if (std::string excuse = excused(pod); !excuse.empty())
      return report(pod, Severity::info, "KAIHeld", "kept: " + excuse + "; " + why);
    const Duration age = pass_.s.now - pod.meta.creation_timestamp;
    if (age < view_.grace) pass_.look_again_in(view_.grace - age);
    candidate.ready = held && age >= view_.grace;
    by_node_[std::string(pod.node_name.view())].push_back(std::move(candidate));
  }

  [[nodiscard]] std::string excused(const KaiPod& pod) const {
    const auto asks = pod.meta.annotations.get(kDoNotDisruptAnnotation);
    if (is_switched_on(asks)) return fmt::format("it has {}={}", kDoNotDisruptAnnotation, *asks);
    const Node* node = world_.nodes.find(pod.node_name.view());
    if (node && is_held(*node)) return fmt::format("node {} has the {}", node->meta.name, hold_of(*node));
    return {};
  }

  // --- Deleting, one per node and interval.

  std::string leader_trouble() {
    if (!elects_leader(kai_, view_)) return {};
    const auto& lease = kai_.lookups.binder_lease;
    if (!lease || due(lease->at)) pass_.plan.kai_wanted.binder_lease = true;
    if (!lease || pass_.s.mono - lease->at >= 2 * settings_.sweep) return "the Lease of the binder is being read";
    return lease_trouble(*lease, pass_.s.now, view_.grace);
  }

  // Why no reservation at all is deleted now; empty: they can be. The conditions that have to last for the grace period
  // run at the same time: after a crash of the binder (the usual origin of orphans) one grace period is waited.
  std::string hold() {
    if (std::string trouble = binder_trouble(kai_, view_, pass_.s.now, Duration::zero()); !trouble.empty())
      return trouble;
    std::string leader = leader_trouble();
    const bool led = elects_leader(kai_, view_) && kai_.lookups.binder_lease;
    const Deployment* binder = kai_.deployments.find(ObjectKey{view_.ns, std::string(kBinder)});
    const bool stable = pass_.held_for(
        {Timer::kai_stable, view_.signature,
         fmt::format("{}/{}/{}", binder ? binder->meta.uid.str() : "", binder ? binder->meta.generation : 0,
                     led ? kai_.lookups.binder_lease->holder : std::string())},
        view_.grace);
    if (std::string young = binder_trouble(kai_, view_, pass_.s.now, view_.grace); !young.empty()) return young;
    if (!leader.empty()) return leader;
    return stable ? std::string() : "kai-config and the binder have been seen unchanged for less than the grace period";
  }

  void act() {
    const std::string held = hold();
    std::int64_t left = settings_.deletions_per_pass;
    for (auto& [node, candidates] : by_node_) {
      std::ranges::sort(candidates, {}, [this](const Candidate& c) {
        return std::tuple(!c.ready, refused_at(*c.judgement.reservation), c.since, c.judgement.reservation->meta.name);
      });
      const bool turn = pass_.held_for(
          {Timer::kai_turn, node, candidates.front().judgement.reservation->meta.uid.str()}, settings_.node_interval);
      for (const Candidate& candidate : candidates) {
        const bool first = &candidate == &candidates.front();
        if (std::string wait = why_wait(candidate, held, first && turn); !wait.empty()) {
          report(*candidate.judgement.reservation, Severity::info, "KAIOrphan",
                 fmt::format("kept for now: {}; {}", wait, candidate.judgement.why.message));
        } else if (const std::string why = why_observing(); !why.empty()) {
          report(*candidate.judgement.reservation, Severity::warning, "KAIWouldDelete",
                 fmt::format("would be deleted: {}; kept because {}", candidate.judgement.why.message, why));
        } else if (left-- > 0) {
          remove(candidate);
        } else {
          pass_.look_again_in(std::chrono::milliseconds(250));
        }
      }
    }
  }

  // When the API server last refused the deletion, if it has refused it several times; else the earliest time. A node's
  // candidates are tried in this order: refused ones last, and of these the one that was refused longest ago first.
  [[nodiscard]] MonoTime refused_at(const KaiPod& pod) const {
    constexpr int kTries = 3;
    auto it = kai_.lookups.refusals.find(pod.meta.uid.str());
    return it == kai_.lookups.refusals.end() || it->second.count < kTries ? MonoTime{} : it->second.at;
  }

  [[nodiscard]] std::string why_wait(const Candidate& candidate, const std::string& held, bool turn) const {
    if (!candidate.ready)
      return fmt::format("deleted once it is {} old and has been unused for as long",
                         k8s::format_go_duration(view_.grace));
    if (!held.empty()) return held;
    return turn ? std::string()
                : fmt::format("at most one deletion per node in {}", k8s::format_go_duration(settings_.node_interval));
  }

  // Why nothing is deleted, only reported; empty: it is deleted.
  [[nodiscard]] std::string why_observing() const {
    const bool observes = settings_.gc_mode == KaiGcMode::observe;
    return view_.unrecognised.empty() && observes ? "the mode is Observe" : view_.unrecognised;
  }

  void remove(const Candidate& candidate) {
    const KaiPod& pod = *candidate.judgement.reservation;
    DeletePod action{.pod = pod.meta.key(), .uid = pod.meta.uid, .resource_version = pod.meta.resource_version};
    // No kubelet is left to end it.
    if (candidate.node_gone) action.grace_period_seconds = 0;
    const std::string device(pod.meta.annotations.get(kDeviceAnnotation).value_or("of unknown UUID"));
    const bool no_node = pod.node_name.empty();
    const std::string holds = no_node ? std::string("it is on no node")
                                      : fmt::format("it holds GPU {} of node {}{}", device, pod.node_name.view(),
                                                    candidate.node_gone ? ", which no longer exists" : "");
    const std::string message = fmt::format("{}; {}", candidate.judgement.why.message, holds);
    const std::string note = fmt::format("Deleting reservation {}: {}", k8s::to_string(action.pod), message);
    pass_.event(candidate.node_gone || no_node ? pod_ref(pod.meta) : node_ref(std::string(pod.node_name.view())), false,
                candidate.judgement.why.code, "DeleteReservation", note);
    pass_.add(std::move(action), candidate.judgement.why.code, message, true);
  }

  KaiPass& pass_;
  const World& world_;
  const KaiWorld& kai_;
  const KaiIndex& index_;
  const KaiView& view_;
  const KaiSettings& settings_;
  DeviceClaims claims_;
  std::map<std::string, std::vector<Candidate>> by_node_;

 public:
  std::set<std::string> wanted_groups_;
};

}  // namespace

void plan_reservation_gc(KaiPass& pass) {
  const World& world = pass.s.world;
  if (world.kai.pods.size() == 0) return;
  if (std::string why = kai_hold(world); !why.empty()) {
    if (pass.s.settings.kai.gc_mode == KaiGcMode::off) return;
    pass.finding(Severity::warning, {"v1", "Namespace", "", pass.kai.view().reservations, ""}, "KAIHold",
                 fmt::format("no reservation is deleted: {}", why));
    pass.look_again_in(pass.s.settings.kai.sweep);
    return;
  }
  Collector collector(pass);
  collector.run();
  pass.plan.kai_wanted.groups.merge(std::move(collector.wanted_groups_));
}

}  // namespace gso
