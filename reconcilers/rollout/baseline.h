// The baseline: what the fleet ran when the operator first read it, recorded once, so that an installation restarts
// nothing. The writes of the record, whatever their cause, are planned here too.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_baseline(Pass& pass);

// The entry gets what the node's annotation shows as loaded: if somebody removes the annotation, the node still runs
// that, and is not restarted (S9). Unchanged if no annotation shows it, or the annotation names no key of a ConfigMap.
void note_annotation(const Pass& pass, const NodeAssessment& assessment, MachineRecord& entry);

// Plans the writes after which the ConfigMaps of the record contain `next`.
void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message);
// The text of "namespace/configmap/key" if it still has that revision; empty otherwise.
[[nodiscard]] std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision);

}  // namespace gso
