// The record of what the fleet runs: the baseline written at first sight, and the last verified revision of each key.
// Kept in the state ConfigMap under "baseline.json"; everything later is remembered on the nodes themselves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"

namespace gso {

struct FleetRecord {
  struct Entry {
    k8s::Interned set;  // "namespace/configmap"
    k8s::Interned key;  // Empty: no sharing by the fallback `empty`.
    k8s::Interned revision;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  k8s::WallTime recorded_at{};
  // Of nodes: what only the record knows. One that remembers for itself (its annotation) is forgotten here; the text in
  // the ConfigMap follows when it is written anyway.
  std::unordered_map<std::string, Entry> nodes;  // By node name.
  std::set<std::string> preexisting_drift;       // Did not match their profile when first seen.
  std::set<std::string> unproven;                // Pods older than the content's last change when first seen.
  std::map<std::string, std::int64_t> gpus;      // By node: devices, where GFD's label does not say them.
  std::map<std::string, std::string> verified;   // "namespace/configmap/key" -> revision last verified on a fleet.
  std::map<std::string, std::string> previous;   // The same, before that one.
  // Revision -> a text of it, for those two: what an undo puts back. A text that is too long is not kept.
  std::map<std::string, std::string> texts;
  static constexpr std::size_t kMaxText = 16U << 10U;    // Bytes of one text,
  static constexpr std::size_t kMaxTexts = 256U << 10U;  // and of all: a ConfigMap holds 1 MiB.
  void forget(const std::string& node);
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
  friend bool operator==(const FleetRecord&, const FleetRecord&) = default;
};

// Sorted and without blanks: equal records give equal text.
[[nodiscard]] std::string print_record(const FleetRecord& record);
// Errors (reason `decode`) say what is wrong. A record of a later version than this release knows is an error too: it
// is left alone, and nothing is rolled by it.
[[nodiscard]] k8s::Result<FleetRecord> parse_record(std::string_view text);

}  // namespace gso
