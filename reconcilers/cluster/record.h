// The record: what the operator must remember of a fleet and cannot read from its objects: what nodes had loaded when
// they were first seen (the baseline), the last verified revision of each key, failures, and every stop that a person
// has set, so that the stop applies even after an object is deleted (S10). Kept in ConfigMaps (record_store.h).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/timer.h"

namespace gso {

// A machine: a hash of the uid of its Node. A new machine with an old name has another uid, and therefore no entry.
enum class MachineId : std::uint64_t {};
[[nodiscard]] MachineId machine_id(std::string_view node_uid);
// 16 hexadecimal digits.
[[nodiscard]] std::string print_machine(MachineId machine);

// The record's entry of one machine.
struct MachineRecord {
  // What it had loaded when this entry was written: when it was first seen, or what the Node's annotation showed later.
  // The annotation takes precedence, because it is newer. Empty: unknown.
  k8s::Interned config_map;  // "namespace/configmap"
  k8s::Interned key;         // Empty: no sharing by the fallback `empty`.
  k8s::Interned revision;
  std::int64_t devices = 0;  // The most GPUs that it has shown; 0: unknown.
  bool measured = false;     // `devices` comes from the served capacity, because GFD's label does not show it.
  bool drift = false;        // Did not match its profile when first seen.
  bool unproven = false;     // Its pods were older than the content's last change when first seen.
  [[nodiscard]] bool empty() const { return revision.empty() && devices == 0; }
  friend bool operator==(const MachineRecord&, const MachineRecord&) = default;
};

// The entries of all machines, in kRecordShards parts by machine. A copy shares the parts that neither side changes.
class MachineRecords {
 public:
  static constexpr std::size_t kShards = 16;
  using Shard = std::vector<std::pair<MachineId, MachineRecord>>;  // Sorted by machine.
  [[nodiscard]] static std::size_t shard_of(MachineId machine);

  // nullptr: no entry.
  [[nodiscard]] const MachineRecord* find(MachineId machine) const;
  // An empty entry is removed.
  void set(MachineId machine, const MachineRecord& entry);
  void erase(MachineId machine) { set(machine, {}); }
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const Shard& shard(std::size_t index) const;
  void replace_shard(std::size_t index, std::shared_ptr<const Shard> shard) { shards_[index] = std::move(shard); }
  // The part is certainly the same as in `other`, because neither has changed it since one was copied from the other.
  [[nodiscard]] bool shares(std::size_t index, const MachineRecords& other) const {
    return shards_[index] == other.shards_[index];
  }
  // Ordered by shard, then by machine.
  void for_each(const std::function<void(MachineId, const MachineRecord&)>& visit) const;
  // Machines whose entries differ.
  [[nodiscard]] std::set<MachineId> differing(const MachineRecords& other) const;
  friend bool operator==(const MachineRecords& a, const MachineRecords& b);

 private:
  std::array<std::shared_ptr<const Shard>, kShards> shards_;  // Null: empty.
};

// The last spec of a SharingPolicy, and its other data that has an effect: name, uid, creation time and the operator's
// annotations.
struct RecordedPolicy {
  SharingPolicy policy;
  // Since when its object has been deleted, or being deleted, with a stop that still applies.
  std::optional<k8s::WallTime> gone_since;
  std::vector<std::string> beside;  // SharingPolicy::Gone::beside
  friend bool operator==(const RecordedPolicy&, const RecordedPolicy&) = default;
};
// Without data that has no effect (status, labels, versions, finalizers).
[[nodiscard]] SharingPolicy recorded_spec(const SharingPolicy& policy);

// The switches of one rollout, as last seen in its SharingRollout.
struct RecordedSwitches {
  std::string policy;
  std::string config_map;  // "namespace/configmap"
  std::string key;
  std::string revision;
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  bool undone = false;
  bool left = false;  // Another revision has replaced it since: its switches have no effect if this revision returns.
  std::string retry;  // The policy's gpusharing.dev/retry when abort or undo was first seen: another value lifts them.
  // DaemonSet ("namespace/name") -> its newest template when these switches were first seen: under OnDelete another one
  // is another attempt. Empty: unknown.
  std::map<std::string, std::string> templates = {};
  [[nodiscard]] bool any() const { return paused || approved || aborted || undone; }
  friend auto operator<=>(const RecordedSwitches&, const RecordedSwitches&) = default;
};

// The canary of one group: the nodes that get a revision first, and their progress.
struct RecordedCanary {
  std::string policy;
  std::string config_map;  // "namespace/configmap"
  std::string key;
  std::string revision;
  std::string product;
  std::string templates;                   // templates_text() (rollout/rollout_view.h) when it began; empty: unknown.
  std::map<std::string, MachineId> nodes;  // Name -> machine; they served when their change began (S12).
  std::set<std::string> begun;             // Of these: they restart or verify. If their Node goes, that is a failure.
  std::optional<k8s::WallTime> soaking_since;  // Since when all required canaries have shown the revision.
  bool passed = false;                         // The canaries have soaked: the other nodes can start.
  friend bool operator==(const RecordedCanary&, const RecordedCanary&) = default;
};

// The last attempt to fix a stuck pod of a machine by deleting it (rollout/repairs.h). It is recorded before the
// pod is deleted, so that no restart of the operator forgets an attempt and no refused deletion counts twice.
struct RecordedRemediation {
  MachineId machine{};
  std::string component;  // to_string(Component)
  std::string pod;        // Uid of the pod.
  std::int64_t attempts = 0;
  k8s::WallTime at{};  // When it was recorded.
  friend auto operator<=>(const RecordedRemediation&, const RecordedRemediation&) = default;
};

// A text that a key had. Pods that were created meanwhile have read it.
struct RecordedText {
  std::string revision;
  k8s::WallTime since{};  // The key certainly had it from then on, by the API server's clock.
  // Until when creation times of pods prove nothing about this text: pods that existed before it have later ones,
  // because the API server's clock was set back.
  std::optional<k8s::WallTime> doubtful_until;
  friend bool operator==(const RecordedText&, const RecordedText&) = default;
};

// What the nodes with one profile key show.
struct ShownKey {
  std::string revision;
  bool by_all = true;              // Every node shows it,
  bool proven = true;              // and its pods have certainly read its text (S11).
  std::set<std::string> products;  // The products that have shown it, each in its own canary or on all nodes.
};

// One attempt at a revision, which has failed or in which nodes have failed.
struct RecordedAttempt {
  std::string policy;
  std::string config_map;  // "namespace/configmap"
  std::string key;
  std::string revision;
  std::string retry;  // The policy's gpusharing.dev/retry at that time: another value is another attempt.
  // templates_text() (rollout/rollout_view.h) at that time: under OnDelete another image is another attempt, which
  // might not fail. Empty: unknown.
  std::string templates;
  friend auto operator<=>(const RecordedAttempt&, const RecordedAttempt&) = default;
};

// The machines that have failed so far in an attempt, and whose failure counts against its revision (S12).
struct RecordedFailures : RecordedAttempt {
  std::map<MachineId, std::string> machines;  // With the name that the Node had.
  friend bool operator==(const RecordedFailures&, const RecordedFailures&) = default;
};

struct FleetRecord {
  k8s::WallTime recorded_at{};
  MachineRecords machines;
  // Namespaces that the operator was not allowed to read (403) when the baseline was recorded, and those whose device
  // plugins claimed one node then: nodes of these plugins without an entry have no baseline yet.
  std::set<std::string> without_baseline;
  // The operand namespaces that were chosen when nothing named any (discovery.h); empty: none were.
  std::set<std::string> operand_namespaces;
  // Labels by which plugins have selected their profile (NODE_LABEL), but for the usual one: when the variable is
  // renamed, what policies wrote under the old name is taken back, and no other label of a node.
  std::set<std::string> node_labels;
  [[nodiscard]] bool is_node_label(std::string_view label) const;
  // Uid of a DaemonSet -> number of its newest ControllerRevision when the baseline was recorded. Pods of older
  // templates stay as they are until a newer number exists, even if that template is an earlier one that returns.
  std::map<std::string, std::int64_t> templates;
  std::map<std::string, std::string> verified;  // "namespace/configmap/key" -> revision last verified on a fleet.
  // "namespace/configmap/key" -> the products that have shown that revision. A group of another product has a canary of
  // its own. A record without an entry (an earlier release wrote it) names no product: those that show the revision
  // are added in the next pass, and the others have a canary.
  std::map<std::string, std::set<std::string>> verified_on;
  // "namespace/configmap/key" -> the revision that was verified before that one; or, if none was, the revision that
  // every node showed when the operator first read them, with pods that might not have read its text. An undo restores
  // it; it is no proof.
  std::map<std::string, std::string> previous;
  // Revision -> its text, for those two maps: an undo restores it. A text that is too long is not kept.
  std::map<std::string, std::string> texts;
  static constexpr std::size_t kMaxText = 16U << 10U;    // Bytes of one text,
  static constexpr std::size_t kMaxTexts = 128U << 10U;  // and of all texts: a part of the record has at most 512 KiB.
  // For that ConfigMap ("namespace/configmap") and key; empty: none was verified yet.
  [[nodiscard]] std::string_view last_verified(std::string_view config_map, std::string_view key) const;
  // Whether nodes have shown a text of that key, verified or not.
  [[nodiscard]] bool knows_key(std::string_view config_map, std::string_view key) const;
  // The revision is the last verified one of that key, and nodes of that product have shown it.
  [[nodiscard]] bool has_shown(std::string_view config_map, std::string_view key, std::string_view revision,
                               const std::string& product) const;
  // Revision `to` of `id` is verified, and these products have shown it. Its text is kept, and texts that no entry
  // refers to are removed.
  void note_verified(const std::string& id, const std::string& to, std::string_view text,
                     const std::set<std::string>& products = {});
  // Every node shows `to` of `id` since the installation, and that is no proof: it becomes `previous`.
  void note_shown(const std::string& id, const std::string& to, std::string_view text);
  // One of the two, for what every node shows.
  void note(const std::string& id, const ShownKey& shown, std::string_view text);
  // Keeps the text of `to`, which `verified` or `previous` names, and removes the texts that neither names. If all are
  // too long, those give way that only `previous` names.
  void keep_text(const std::string& to, std::string_view text);
  // Removes the texts that neither `verified` nor `previous` names.
  void forget_texts();
  // "namespace/configmap/key" -> its last texts, oldest first, as far as pods might have read them.
  std::map<std::string, std::vector<RecordedText>> history;
  // A revision that failed too often or was undone: not tried again until the profile changes, or a person asks for it
  // by another value of the policy's annotation gpusharing.dev/retry, which ends the entry.
  struct Failure : RecordedAttempt {
    // The nodes on which it failed, some possibly deleted since: name -> machine. None: undone by a person. A machine
    // without an id (an earlier release wrote the entry) is not known: no node counts as recovered for it.
    std::map<std::string, MachineId> nodes;
    bool rolled_back = false;  // The policy's nodes are rolled back to `good`.
    friend auto operator<=>(const Failure&, const Failure&) = default;
  };
  std::vector<Failure> failures;  // Oldest first; at most kMostFailures, and those in force.
  static constexpr std::size_t kMostFailures = 64;
  // One entry for each attempt that has not ended: a machine that leaves its policy does not take its failure along.
  std::vector<RecordedFailures> failing;             // Oldest first; at most kMostFailures, and those of present nodes.
  static constexpr std::size_t kMostFailing = 1000;  // Machines in all of them.
  // (policy, "namespace/configmap") -> the inline profile that all of its nodes have shown last.
  struct Good {
    std::string key;
    std::string revision;
    std::string before;  // The last good key before this one; empty: none.
    friend bool operator==(const Good&, const Good&) = default;
  };
  std::map<std::pair<std::string, std::string>, Good> good;
  // The failure that applies to this revision, or nullptr.
  [[nodiscard]] const Failure* failure(std::string_view policy, std::string_view config_map, std::string_view key,
                                       std::string_view revision, std::string_view retry) const;
  std::vector<RecordedCanary> canaries;           // Of rollouts in progress.
  std::vector<RecordedRemediation> remediations;  // Sorted by machine and component, one entry for each.
  static constexpr std::size_t kMostRemediations = 1000;
  static constexpr k8s::Duration kRemediationsKept = std::chrono::hours(2);
  // Adds an attempt in place of the one before it, and forgets attempts that are too old. False: the record has too
  // many attempts, so this one is not added, and the pod stays until the number falls.
  [[nodiscard]] bool note_remediation(const RecordedRemediation& attempt,
                                      const std::function<bool(const RecordedRemediation&)>& is_too_old);
  // nullptr: no attempt is known. It can be too old to count.
  [[nodiscard]] const RecordedRemediation* remediation(MachineId machine, std::string_view component) const;
  // Timers that outlive the operator, so that one that restarts often still repairs what has drifted for long. The
  // subject of a timer of a node is its machine (rollout/recorded_timers.h).
  Timers timers;
  static constexpr std::size_t kMostTimers = 1000;
  // --- Stops.
  std::map<std::string, RecordedPolicy> policies;           // By name.
  static constexpr std::size_t kMaxPolicies = 192U << 10U;  // Bytes of their specs; one with a stop is always kept.
  std::optional<k8s::WallTime> crds_gone_since;             // The CRDs were installed once, and are not any more.
  // The annotation gpusharing.dev/forget-policies, and when the operator first saw this value: stops that came later
  // are not forgotten, even if the value lies in the future.
  struct Forgetting {
    std::string value;
    k8s::WallTime seen{};
    friend bool operator==(const Forgetting&, const Forgetting&) = default;
  };
  std::optional<Forgetting> forgetting;
  std::vector<RecordedSwitches> rollouts;  // Sorted; those with a switch that is on.
  // ConfigMap of a plugin ("namespace/name") that a person has paused -> its uid (config_maps.h).
  std::map<std::string, std::string> paused_config_maps;
  // The entry of that rollout, or nullptr.
  [[nodiscard]] const RecordedSwitches* rollout(std::string_view policy, std::string_view config_map,
                                                std::string_view key, std::string_view revision) const;
  // The switches that apply to that rollout: none if `left`; an abort or undo that `retry` lifts does not count.
  [[nodiscard]] std::optional<RecordedSwitches> switches(std::string_view policy, std::string_view config_map,
                                                         std::string_view key, std::string_view revision,
                                                         std::string_view retry) const;
  friend bool operator==(const FleetRecord&, const FleetRecord&) = default;
};

// --- Which texts of its key a container can have read: those that the key had while it read, according to the record.
// Labels do not show that where two texts differ in none of them.

// Within which time a container has read its text.
struct ReadingTime {
  k8s::WallTime from{};
  k8s::WallTime to{};
};

// Stands in the record for texts that are not known (any more).
inline constexpr std::string_view kUnknownText = "unknown";

// The present text of a key.
struct PresentText {
  std::string_view revision;
  // It has certainly been there since `since` (data_known_since(), config_maps.h), and was not there before
  // `first`.
  k8s::WallTime since{};
  k8s::WallTime first{};
};

// What a container can have read.
struct ReadTexts {
  std::set<std::string_view> others;  // Revisions, kUnknownText among them.
  bool present = false;
};

// Adds the texts that a container can have read in that time. Of the other texts only those count that came after the
// key first had the present one: a node is recorded with the present text once that has come, and can have loaded it by
// its label, with pods that are older. Kubernetes' times are whole seconds, and clocks differ by up to `difference`: so
// close to an edit either text counts. An invalid text does not: a container that exits on it starts again with a later
// one. `texts`: FleetRecord::history of the key.
void add_texts_read(const std::vector<RecordedText>& texts, const PresentText& present, const ReadingTime& time,
                    k8s::Duration difference, ReadTexts& out);

// A container can have read another text than that one in that time. False where the record has no text of that time.
[[nodiscard]] bool can_have_read_another(const std::vector<RecordedText>& texts, const PresentText& present,
                                         std::string_view revision, const ReadingTime& time, k8s::Duration difference);

// The key had the present text, then another one, and now the present text again.
[[nodiscard]] bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present);

// RecordedText::doubtful_until of the present text; nullopt: none, or the record has another text.
[[nodiscard]] std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts,
                                                          std::string_view present);

// The record has the present text as the last one.
[[nodiscard]] bool is_last(const std::vector<RecordedText>& texts, std::string_view present);
// Adds a text. If there are too many, the oldest ones become kUnknownText, all but the first of them: whether the
// present text has come back stays known.
inline constexpr std::size_t kMostTexts = 12;  // Of one key.
void add_text(std::vector<RecordedText>& texts, RecordedText text);

}  // namespace gso
