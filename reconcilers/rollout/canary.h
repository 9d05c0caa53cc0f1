// Canaries: before a revision goes to all nodes of a group (alike in product and profile), some of them have to show it
// for a while. Who they are, since when they soak and that they have passed stands in the record, so that neither a
// restart of the operator nor a node that came to the revision by another way changes it: a node that was repaired,
// joined or loaded by itself proves nothing (S12).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

// Of one group.
struct Canary {
  bool passed = false;               // Verified and soaked, or none is asked for.
  bool verified = false;             // As many canaries as asked for show the revision.
  std::int64_t proven = 0;           // Canaries that show the revision.
  std::optional<WallTime> soaks_to;  // Verified, and not passed yet: when its soak ends.
};

[[nodiscard]] Canary canary_of(RolloutView& rollout, const std::string& product);
// A node of the group waits for its change and serves, so that it could be a canary (a node that is out of service
// proves nothing, S12). `Candidates::free`: one that neither a person nor another actor holds now.
enum class Candidates : std::uint8_t { any, free };
[[nodiscard]] bool has_candidate(RolloutView& rollout, const std::string& product, Candidates which);
// The node's change tries its revision on somebody who served.
[[nodiscard]] bool is_canary(const NodeAssessment& assessment);
// The node is a canary of this rollout, by the record.
[[nodiscard]] bool is_recorded_canary(RolloutView& rollout, const std::string& node);
// The canary of some group of the rollout was made by this rollout, and has passed.
[[nodiscard]] bool has_passed_canary(RolloutView& rollout);
// Nodes of the group in a change to the target that are canaries while it has not passed.
[[nodiscard]] std::int64_t canaries_in_flight(RolloutView& rollout, const std::string& product);
// A node that stopped showing its profile may be restarted into it: what is restarted under a taint that the plugin
// does not tolerate does not come back, and GPUs that DRA offers as well are told as DRADoubleOffer.
[[nodiscard]] bool may_be_reloaded(const Pass& pass, const std::string& node);
// A canary that was verified and has stopped showing its profile before it passed: which, and what it shows. Empty:
// none.
[[nodiscard]] std::string drifting_canary(RolloutView& rollout);

// What the record must say of canaries now. A node that served is named while its change is in progress, long before it
// can be verified. An entry ends when its revision is verified on the fleet, or is not the target any more.
[[nodiscard]] std::vector<RecordedCanary> update_canaries(const Pass& pass);

}  // namespace gso
