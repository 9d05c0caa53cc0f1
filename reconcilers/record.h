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

#include "k8sclient/error.h"
#include "k8sclient/interned.h"
#include "k8sclient/time.h"

namespace gso {

struct FleetRecord {
  struct Entry {
    k8s::Interned set;       // "namespace/configmap"
    k8s::Interned key;       // Empty: no sharing by the fallback `empty`.
    k8s::Interned revision;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  k8s::WallTime recorded_at{};
  std::unordered_map<std::string, Entry> nodes;  // By node name.
  std::set<std::string> preexisting_drift;       // Did not match their profile when first seen.
  std::set<std::string> unproven;                // Pods older than the content's last change when first seen.
  std::map<std::string, std::int64_t> gpus;       // By node: devices, where GFD's label does not say them.
  std::map<std::string, std::string> verified;   // "namespace/configmap/key" -> revision last verified on a fleet.
  friend bool operator==(const FleetRecord&, const FleetRecord&) = default;
};

// Sorted and without blanks: equal records give equal text.
[[nodiscard]] std::string print_record(const FleetRecord& record);
// Errors (reason `decode`) say what is wrong. A record of a later version than this release knows is an error too: it
// is left alone, and nothing is rolled by it.
[[nodiscard]] k8s::Result<FleetRecord> parse_record(std::string_view text);

}  // namespace gso
