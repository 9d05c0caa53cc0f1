// The baseline: what the fleet ran when the operator first read it, recorded once, so that an installation restarts
// nothing. The writes of the record, whatever their cause, are planned here too.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_baseline(Pass& pass);
// With the record of operand namespaces that nothing names (cluster/discovery.h).
void report_chosen_namespaces(Pass& pass);
// A record exists, and plan_baseline() writes it in this pass: with the baseline of namespaces that had none.
[[nodiscard]] bool completes_baseline(const Pass& pass);

// Enters what the annotations of nodes show as loaded: if somebody removes an annotation, the node still runs that, and
// is not restarted (S9). Remembers the few profiles of a fleet between the nodes of one pass.
class LoadedEntries {
 public:
  explicit LoadedEntries(const Pass& pass) : pass_(pass) {}
  // Unchanged if no annotation shows it, or the annotation names no key of a ConfigMap.
  void enter(const NodeAssessment& assessment, MachineRecord& entry);

 private:
  struct Profile {
    k8s::Interned config_map;  // "namespace/configmap"
    k8s::Interned key;
  };
  // nullopt: not the name of a key. Whoever can write Nodes can write a text that would make the record too large.
  [[nodiscard]] std::optional<Profile> read(const NodeAssessment& assessment) const;

  const Pass& pass_;
  // By installation and the annotation's text.
  std::map<std::pair<std::size_t, k8s::Interned>, std::optional<Profile>> profiles_;
};

// Plans the writes after which the ConfigMaps of the record contain `next`.
void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message);
// The text of "namespace/configmap/key" if it still has that revision; empty otherwise.
[[nodiscard]] std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision);

}  // namespace gso
