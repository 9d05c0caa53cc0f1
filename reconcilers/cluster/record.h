// The record: what the operator must remember of a fleet and cannot read from it. What nodes had loaded at first sight
// (the baseline), the last verified revision of each key, failures, and every stop that a person has set, so that it
// holds although an object goes away (S10). Kept in ConfigMaps (record_store.h).
#pragma once

#include <array>
#include <compare>
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

namespace gso {

// A machine: a hash of the uid of its Node. A new machine of an old name has another uid, and so no entry.
enum class MachineId : std::uint64_t {};
[[nodiscard]] MachineId machine_id(std::string_view node_uid);

// What the record says of one machine.
struct MachineRecord {
  // What it had loaded when it was first seen; empty where the Node says so itself (its annotation).
  k8s::Interned set;  // "namespace/configmap"
  k8s::Interned key;  // Empty: no sharing by the fallback `empty`.
  k8s::Interned revision;
  std::int64_t devices = 0;  // The most GPUs that it has shown; 0: not known.
  bool measured = false;     // GFD's label does not tell `devices`: what the plugin served does.
  bool drift = false;        // Did not match its profile when first seen.
  bool unproven = false;     // Its pods were older than the content's last change when first seen.
  [[nodiscard]] bool empty() const { return revision.empty() && devices == 0; }
  friend bool operator==(const MachineRecord&, const MachineRecord&) = default;
};

// The entries of all machines, in kRecordShards parts by machine. A copy shares the parts that neither side changes.
class MachineRecords {
 public:
  static constexpr std::size_t kShards = 16;
  using Shard = std::map<MachineId, MachineRecord>;
  [[nodiscard]] static std::size_t shard_of(MachineId machine);

  // nullptr: there is no entry.
  [[nodiscard]] const MachineRecord* find(MachineId machine) const;
  // An empty entry is removed.
  void set(MachineId machine, const MachineRecord& entry);
  void erase(MachineId machine) { set(machine, {}); }
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const Shard& shard(std::size_t index) const;
  void replace_shard(std::size_t index, std::shared_ptr<const Shard> shard) { shards_[index] = std::move(shard); }
  // In order of the shards, and of machines in each.
  void for_each(const std::function<void(MachineId, const MachineRecord&)>& visit) const;
  friend bool operator==(const MachineRecords& a, const MachineRecords& b);

 private:
  std::array<std::shared_ptr<const Shard>, kShards> shards_;  // Null: empty.
};

// The last spec of a SharingPolicy, with what else governs: name, uid, creation time and our annotations.
struct RecordedPolicy {
  SharingPolicy policy;
  // Since when its object has been gone, or being deleted, with a stop that holds on.
  std::optional<k8s::WallTime> gone_since;
  std::vector<std::string> beside;  // SharingPolicy::Gone::beside
  friend bool operator==(const RecordedPolicy&, const RecordedPolicy&) = default;
};
// Without what does not govern (status, labels, versions, finalizers).
[[nodiscard]] SharingPolicy policy_to_record(const SharingPolicy& policy);

// The switches of one rollout, as its SharingRollout had them last.
struct RecordedSwitches {
  std::string policy;
  std::string set;  // "namespace/configmap"
  std::string key;
  std::string revision;
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  bool undone = false;
  bool left = false;  // Another revision has taken its place since: they do not count should this one come back.
  std::string retry;  // The policy's gpusharing.dev/retry when abort or undo was first seen: another one lifts them.
  [[nodiscard]] bool any() const { return paused || approved || aborted || undone; }
  friend auto operator<=>(const RecordedSwitches&, const RecordedSwitches&) = default;
};

// The canary of one group: the nodes that go to a revision first, and how far they are.
struct RecordedCanary {
  std::string policy;
  std::string set;  // "namespace/configmap"
  std::string key;
  std::string revision;
  std::string product;
  std::string templates;  // Which templates the nodes' pods are made from, where that is ours to roll (OnDelete).
  std::map<std::string, MachineId> nodes;      // Name -> machine; they served when their change began (S12).
  std::optional<k8s::WallTime> soaking_since;  // Since when all that were asked for have shown the revision.
  bool passed = false;                         // They have soaked: the others may follow.
  friend bool operator==(const RecordedCanary&, const RecordedCanary&) = default;
};

struct FleetRecord {
  k8s::WallTime recorded_at{};
  MachineRecords machines;
  // Namespaces that the operator was not allowed to read (403) when the baseline was taken: their nodes have none yet.
  std::set<std::string> without_baseline;
  // Uid of a DaemonSet -> number of its newest ControllerRevision when the baseline was taken. Pods of older templates
  // stay as they are until there is a newer one, be it one that comes back.
  std::map<std::string, std::int64_t> templates;
  std::map<std::string, std::string> verified;  // "namespace/configmap/key" -> revision last verified on a fleet.
  std::map<std::string, std::string> previous;  // The same, before that one.
  // Revision -> a text of it, for those two: what an undo puts back. A text that is too long is not kept.
  std::map<std::string, std::string> texts;
  static constexpr std::size_t kMaxText = 16U << 10U;    // Bytes of one text,
  static constexpr std::size_t kMaxTexts = 128U << 10U;  // and of all: a part of the record has 512 KiB at most.
  // Revision `to` of `id` is verified; its text is kept, and those that nothing names any more go.
  void note_verified(const std::string& id, const std::string& to, std::string_view text);
  // A revision that failed too often or was undone: not tried again until the profile, or the policy's annotation
  // gpusharing.dev/retry, is another one.
  struct Failure {
    std::string policy;
    std::string set;
    std::string key;
    std::string revision;
    std::string retry;            // That annotation when it failed.
    std::set<std::string> nodes;  // On which it failed; they may be gone by now. None: undone by a person.
    bool rolled_back = false;     // The policy's nodes go back to `good`.
    friend auto operator<=>(const Failure&, const Failure&) = default;
  };
  std::vector<Failure> failures;  // Oldest first; at most kMostFailures.
  static constexpr std::size_t kMostFailures = 64;
  // (policy, "namespace/configmap") -> the inline profile that all of its nodes have shown last.
  struct Good {
    std::string key;
    std::string revision;
    std::string before;  // The key that was good before this one; empty: none.
    friend bool operator==(const Good&, const Good&) = default;
  };
  std::map<std::pair<std::string, std::string>, Good> good;
  // The failure that holds for this revision, or nullptr.
  [[nodiscard]] const Failure* failure(std::string_view policy, std::string_view set, std::string_view key,
                                       std::string_view revision, std::string_view retry) const;
  std::vector<RecordedCanary> canaries;  // Of rollouts under way.
  // --- Stops.
  std::map<std::string, RecordedPolicy> policies;           // By name.
  static constexpr std::size_t kMaxPolicies = 192U << 10U;  // Bytes of their specs; one with a stop is always kept.
  std::optional<k8s::WallTime> crds_gone_since;             // Our kinds were served once, and are not any more.
  std::vector<RecordedSwitches> rollouts;                   // Sorted; those with a switch that is on.
  // The entry of that rollout, or nullptr.
  [[nodiscard]] const RecordedSwitches* rollout(std::string_view policy, std::string_view set, std::string_view key,
                                                std::string_view revision) const;
  // The switches that hold for that rollout: none where it was left; an abort or undo that `retry` lifts does not
  // count.
  [[nodiscard]] std::optional<RecordedSwitches> switches(std::string_view policy, std::string_view set,
                                                         std::string_view key, std::string_view revision,
                                                         std::string_view retry) const;
  friend bool operator==(const FleetRecord&, const FleetRecord&) = default;
};

// --- As text (record_text.cc): JSON, sorted and without blanks, so that equal records give equal text.
// The head of the record. `inlined`: with the machines in it. `begun`: the baseline of a large fleet has been begun,
// its shards are not complete yet.
struct RecordHead {
  FleetRecord record;  // Without machines where they are in shards.
  bool sharded = false;
  bool begun = false;
};
[[nodiscard]] std::string print_head(const RecordHead& head);
// One shard; `recorded_at` ties it to its head.
[[nodiscard]] std::string print_shard(const MachineRecords::Shard& shard, std::size_t index, k8s::WallTime recorded_at);
// Errors (reason `decode`) say what is wrong. A record of another version than this release knows is an error too: it
// is left alone, and nothing is rolled by it.
[[nodiscard]] k8s::Result<RecordHead> parse_head(std::string_view text);
[[nodiscard]] k8s::Result<std::shared_ptr<const MachineRecords::Shard>> parse_shard(std::string_view text,
                                                                                    std::size_t index,
                                                                                    k8s::WallTime recorded_at);

}  // namespace gso
