// The last texts of each key, in the record: what pods have read that were created between two edits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// FleetRecord::history as it must be now: with the present texts.
[[nodiscard]] std::map<std::string, std::vector<RecordedText>> present_history(const Pass& pass);
// A key of the record has another text now: it is recorded at once, because it can be taken back before anything else
// is, and kubelets show it to containers for a while after that.
[[nodiscard]] bool has_new_text(const Pass& pass);

}  // namespace gso
