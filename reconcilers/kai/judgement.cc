// The rules. If any condition is in doubt, the reservation is kept and a finding says why.
#include "reconcilers/kai/judgement.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {

using namespace kai;

namespace {

std::string name_of(const ObjectMeta& meta) {
  return k8s::to_string(meta.key());
}

std::string names_of(const std::vector<const KaiPod*>& pods) {
  constexpr std::size_t kMost = 3;
  std::string out;
  for (std::size_t i = 0; i < pods.size() && i < kMost; ++i) out += (i == 0 ? "" : ", ") + name_of(pods[i]->meta);
  if (pods.size() > kMost) out += fmt::format(" and {} more", pods.size() - kMost);
  return out;
}

class Judge {
 public:
  Judge(const GroupFacts& facts, const DeviceClaims& claims) : facts_(facts), claims_(claims) {
    for (const KaiPod* pod : facts.consumers)
      if (is_alive(*pod)) live_.push_back(pod);
    find_intents();
  }

  GroupJudgement run() {
    for (const KaiPod* reservation : facts_.reservations) out_.reservations.push_back(judge_one(*reservation));
    return std::move(out_);
  }

 private:
  // --- BindRequests. `intent_` keeps everything; `explained_` ones belong to live consumers and say nothing new.
  void find_intents() {
    for (const BindRequest* request : facts_.requests) {
      std::string why = intent_of(*request);
      if (!why.empty() && intent_.empty()) intent_ = std::move(why);
    }
  }

  [[nodiscard]] const KaiPod* live_consumer(const ObjectKey& key) const {
    auto it = std::ranges::find_if(live_, [&](const KaiPod* pod) { return pod->meta.key() == key; });
    return it == live_.end() ? nullptr : *it;
  }

  // Why this BindRequest keeps the group's reservations; empty: it does not.
  std::string intent_of(const BindRequest& request) {
    const std::string name = "BindRequest " + name_of(request.meta);
    if (request.meta.deletion_timestamp) return name + " names the group and is being deleted";
    if (is_terminally_failed(request)) return {};
    if (request.phase != "Succeeded") {
      return fmt::format("{} names the group, phase {}", name,
                         request.phase.empty() ? "not set yet" : request.phase.view());
    }
    const ObjectKey pod{std::string(request.meta.ns.view()), request.pod_name};
    if (live_consumer(pod) != nullptr) return {};  // The live consumer already protects the group.
    const bool finished =
        std::ranges::any_of(facts_.consumers, [&](const KaiPod* seen) { return seen->meta.key() == pod; });
    if (finished) return {};
    const std::optional<bool> alive = facts_.pod_alive(pod);
    if (!alive) out_.wants.pods.insert(pod);
    if (alive && !*alive) return {};
    if (!alive)
      return fmt::format("{} has succeeded; whether its pod {} is alive is not known yet", name, k8s::to_string(pod));
    return fmt::format("{} has succeeded, and its pod {} is alive, with or without the group label", name,
                       k8s::to_string(pod));
  }

  // --- One reservation.
  [[nodiscard]] Judgement say(const KaiPod& reservation, GcVerdict state, Severity severity, std::string_view reason,
                              std::string message) const {
    return {&reservation, state, severity, {std::string(reason), std::move(message)}};
  }

  Judgement judge_one(const KaiPod& reservation) {
    if (live_.empty()) {
      if (!intent_.empty()) return say(reservation, GcVerdict::keep, Severity::info, "KAIBindInProgress", intent_);
      return say(reservation, GcVerdict::orphan, Severity::info, "NoConsumers", why_orphan());
    }
    if (is_proven_duplicate(reservation)) {
      return say(reservation, GcVerdict::duplicate, Severity::warning, "DuplicateReservation",
                 fmt::format("group {} uses another reservation; no consumer ({}) uses GPU {} on node {}", facts_.group,
                             names_of(live_), device_of(reservation), reservation.node_name.view()));
    }
    if (Judgement alarm = find_alarm(reservation); !alarm.why.code.empty()) return alarm;
    if (facts_.reservations.size() > 1) {
      return say(reservation, GcVerdict::keep, Severity::warning, "KAIDuplicateUnproven",
                 fmt::format("group {} has {} reservations and live consumers ({}); {}", facts_.group,
                             facts_.reservations.size(), names_of(live_), why_unproven(reservation)));
    }
    return say(reservation, GcVerdict::keep, Severity::info, "KAIConsumersAlive",
               fmt::format("group {} has live consumers: {}", facts_.group, names_of(live_)));
  }

  [[nodiscard]] std::string why_orphan() const {
    std::string out = fmt::format("no live pod carries group {}", facts_.group);
    if (!facts_.consumers.empty()) out += fmt::format(" (ended: {})", names_of(facts_.consumers));
    return out + (facts_.requests.empty() ? ", no BindRequest names it" : ", no unfinished BindRequest names it");
  }

  // The kubelet has freed its GPU, or is about to, and a consumer might use it. This is the most serious case, unless
  // another reservation of the group provably holds all consumers. The binder deletes consumers only if their group has
  // no reservation left.
  [[nodiscard]] Judgement find_loss(const KaiPod& reservation) {
    const bool failed = !is_alive(reservation);
    if (!failed && !reservation.meta.deletion_timestamp) return {};
    const std::string_view reason = failed ? "KAIReservationFailed" : "KAIReservationTerminating";
    const std::string what = failed ? fmt::format("{}{}{}", reservation.phase.view(),
                                                  reservation.reason.empty() ? "" : ", ", reservation.reason.view())
                                    : std::string("being deleted");
    const std::string lives =
        fmt::format("{} use{} its group {}", names_of(live_), live_.size() == 1 ? "s" : "", facts_.group);
    const bool used =
        std::ranges::any_of(live_, [&](const KaiPod* pod) { return uses(*pod, reservation) == Uses::yes; });
    const auto other = std::ranges::find_if(facts_.reservations,
                                            [&](const KaiPod* pod) { return pod != &reservation && stands(*pod); });
    if (other == facts_.reservations.end()) {
      const std::string danger = failed ? fmt::format(
                                              "the kubelet has freed GPU {}, but KAI has not. If the reservation is "
                                              "deleted, the binder deletes these pods. Shut them down cleanly",
                                              device_of(reservation))
                                        : std::string("the binder will delete them");
      return say(reservation, GcVerdict::keep, Severity::error, reason,
                 fmt::format("the reservation is {} while {}: {}", what, lives, danger));
    }
    if (!used && std::ranges::all_of(live_, [&](const KaiPod* pod) { return held_by_another(*pod, reservation); }))
      return {};
    return say(reservation, GcVerdict::keep, used ? Severity::error : Severity::warning, reason,
               fmt::format("the reservation is {} while {}: {} GPU {}, which the kubelet can assign again. The binder "
                           "keeps these pods because reservation {} is running",
                           what, lives, used ? "they use its" : "they might use its", device_of(reservation),
                           name_of((*other)->meta)));
  }

  // The group has live consumers, and only a person can correct their reservation. Deleting it would make the
  // binder delete the consumers.
  [[nodiscard]] Judgement find_alarm(const KaiPod& reservation) {
    const auto alarm = [&](Severity severity, std::string_view reason, std::string message) {
      return say(reservation, GcVerdict::keep, severity, reason, std::move(message));
    };
    const bool others = facts_.reservations.size() > 1;
    if (Judgement loss = find_loss(reservation); !loss.why.code.empty()) return loss;
    const bool unbound = std::ranges::all_of(live_, [](const KaiPod* pod) { return pod->node_name.empty(); });
    const bool binding =
        std::ranges::any_of(facts_.requests, [](const BindRequest* r) { return r->phase == "Succeeded"; });
    if (unbound && intent_.empty() && !binding) {
      return alarm(Severity::warning, "KAISuspectConsumer",
                   fmt::format("no live pod of group {} is bound or has a BindRequest: {}. A rollback might have left "
                               "the label. To release the GPU, delete each of these pods, or its label {}",
                               facts_.group, names_of(live_), kGroupLabel));
    }
    const bool elsewhere = std::ranges::none_of(
        live_, [&](const KaiPod* pod) { return pod->node_name.empty() || pod->node_name == reservation.node_name; });
    if (elsewhere && !others) {
      return alarm(Severity::error, "KAIReservationElsewhere",
                   fmt::format("the only reservation of group {} is on node {}, its consumers are not: {}",
                               facts_.group, reservation.node_name.view(), names_of(live_)));
    }
    return {};
  }

  // --- Duplicates.
  [[nodiscard]] static std::string device_of(const KaiPod& reservation) {
    const auto device = reservation.meta.annotations.get(kDeviceAnnotation);
    return device && !device->empty() ? std::string(*device) : std::string("(unknown)");
  }

  [[nodiscard]] static std::optional<std::string> uuid_of(const KaiPod& reservation) {
    const auto uuids = device_uuids(reservation.meta.annotations.get(kDeviceAnnotation).value_or(""));
    if (!uuids || uuids->size() != 1) return std::nullopt;
    return uuids->front();
  }

  [[nodiscard]] std::optional<std::vector<std::string>> devices_of(const KaiPod& consumer) {
    const std::optional<ObjectKey> key = device_config_map(consumer);
    if (!key) return std::nullopt;
    const std::optional<std::string> text = facts_.devices(*key, consumer.meta.uid);
    out_.wants.config_maps.insert(*key);
    return text ? device_uuids(*text) : std::nullopt;
  }

  enum class Uses { no, yes, unknown };
  // Whether the consumer's GPU is the one that the reservation holds. GPUs do not move between nodes.
  Uses uses(const KaiPod& consumer, const KaiPod& reservation) {
    if (consumer.node_name.empty()) return Uses::unknown;
    if (consumer.node_name != reservation.node_name) return Uses::no;
    const auto devices = devices_of(consumer);
    const auto device = uuid_of(reservation);
    if (!devices || !device) return Uses::unknown;
    return std::ranges::find(*devices, *device) != devices->end() ? Uses::yes : Uses::no;
  }

  [[nodiscard]] static bool stands(const KaiPod& reservation) {
    return reservation.phase == "Running" && !reservation.meta.deletion_timestamp;
  }

  // Another reservation of the group holds this consumer: on its node, and with its GPU, or as the only one there.
  bool held_by_another(const KaiPod& consumer, const KaiPod& than) {
    std::size_t beside = 0;
    bool proven = false;
    for (const KaiPod* other : facts_.reservations) {
      if (other == &than || !stands(*other) || other->node_name != consumer.node_name) continue;
      ++beside;
      proven = proven || uses(consumer, *other) == Uses::yes;
    }
    return proven || (beside > 0 && than.node_name != consumer.node_name);
  }

  bool is_proven_duplicate(const KaiPod& reservation) {
    if (facts_.reservations.size() < 2 || !intent_.empty()) return false;
    const bool unused =
        std::ranges::all_of(live_, [&](const KaiPod* pod) { return uses(*pod, reservation) == Uses::no; });
    if (!unused || !std::ranges::all_of(live_, [&](const KaiPod* pod) { return held_by_another(*pod, reservation); }))
      return false;
    return claims_(reservation).empty();
  }

  [[nodiscard]] std::string why_unproven(const KaiPod& reservation) {
    if (!intent_.empty()) return intent_;
    const bool used =
        std::ranges::any_of(live_, [&](const KaiPod* pod) { return uses(*pod, reservation) == Uses::yes; });
    if (used) return "this reservation holds the GPU that they use";
    if (!uuid_of(reservation))
      return fmt::format("this reservation does not name its GPU (annotation {})", kDeviceAnnotation);
    if (std::string other = claims_(reservation); !other.empty())
      return fmt::format("its GPU {} is also claimed by reservation {}", device_of(reservation), other);
    for (const KaiPod* pod : live_) {
      if (pod->node_name.empty()) return fmt::format("{} is not bound yet", name_of(pod->meta));
      if (!held_by_another(*pod, reservation)) {
        const auto key = device_config_map(*pod);
        return fmt::format("it is not proven which GPU {} uses{}", name_of(pod->meta),
                           key ? fmt::format(" (ConfigMap {} must belong to that pod, and the operator must be able to "
                                             "read it: set the chart value kai.consumerNamespaces)",
                                             k8s::to_string(*key))
                               : fmt::format(" (no annotation {})", kSharedConfigMap));
      }
    }
    return "it is not proven which GPU they use";
  }

  const GroupFacts& facts_;
  const DeviceClaims& claims_;
  std::vector<const KaiPod*> live_;
  std::string intent_;
  GroupJudgement out_;
};

}  // namespace

std::optional<std::string> LookupResults::Devices::of(const k8s::Uid& consumer) const {
  const bool own = !consumer.empty() && std::ranges::any_of(owners, [&](const Interned& owner) {
    return k8s::Uid(owner.view()) == consumer;
  });
  return known && own ? std::optional(devices) : std::nullopt;
}

std::optional<ObjectKey> device_config_map(const KaiPod& consumer) {
  const auto prefix = consumer.meta.annotations.get(kSharedConfigMap);
  if (!prefix || prefix->empty() || consumer.container_index.empty()) return std::nullopt;
  return ObjectKey{std::string(consumer.meta.ns.view()),
                   fmt::format("{}-{}", *prefix, consumer.container_index.view())};
}

std::optional<std::vector<std::string>> device_uuids(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (const auto cdi = part.rfind('='); cdi != std::string_view::npos) part.remove_prefix(cdi + 1);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.starts_with("GPU-")) return std::nullopt;
    out.emplace_back(part);
  }
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

GroupJudgement judge(const GroupFacts& facts, const DeviceClaims& claims) {
  return Judge(facts, claims).run();
}

}  // namespace gso
