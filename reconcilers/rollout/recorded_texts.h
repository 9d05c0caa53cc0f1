// The last texts of each key, in the record: what pods have read that were created between two edits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// FleetRecord::history as it must be now: with the present texts.
[[nodiscard]] std::map<std::string, std::vector<RecordedText>> present_history(const Pass& pass);
// A key of the record has another text now, which nodes load, in a change or by themselves, or which they wait for
// while somebody holds them or the rollout, or without a free slot, or DaemonSets are restarted in this pass, or a text
// that it has had before: it is recorded now. Other texts are added to the next write.
[[nodiscard]] bool waits_with_new_text(Pass& pass);

}  // namespace gso
