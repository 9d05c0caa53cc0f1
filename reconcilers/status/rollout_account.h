// The status of one SharingRollout while a pass writes it (rollout_status.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_object.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

struct RolloutPhase {
  std::string name;
  Reason why;
  // Progressing, but nothing moves until somebody acts (standstill.h).
  bool stands = false;
  // progress_text(): part of the conditions, but not a reason for an Event.
  std::string progress{};
  [[nodiscard]] std::string said() const {
    return why.message.empty() || progress.empty() ? why.message + progress : why.message + "; " + progress;
  }
};

// The next content of a SharingRollout's status.
struct Account {
  RolloutPhase phase{"Superseded",
                     {"Superseded", "the profile has changed again, or no node of the policy uses it any more"}};
  nlohmann::json status = nlohmann::json::object();  // The present status, updated where it differs.
  bool left = false;                                 // is_left()
  bool anew = false;                                 // RolloutView::anew
  bool stopped = false;                              // By people, failures or windows.
  std::int64_t changing = 0;                         // Nodes in progress,
  std::int64_t settled = 0;                          // and nodes that are done.
};

// Of a SharingRollout whose revision is the view's target.
[[nodiscard]] RolloutPhase rollout_phase_of(const RolloutView& view, const SharingRollout& rollout);

// An entry of status.nodes, and the most that the CRD takes.
inline constexpr std::size_t kMostRolloutNodes = 50;
[[nodiscard]] nlohmann::json rollout_node(std::string_view name, std::string_view state, const Reason& why);
// Deletes the object of an earlier attempt: the next pass creates the new one before it starts a node.
void replace_attempt(Pass& pass, const SharingRollout& rollout, std::string why);

// For a SharingRollout whose template is the newest of its DaemonSet. False if nothing must be written.
[[nodiscard]] bool account_of_daemons(Pass& pass, const DaemonRollout& daemons, const SharingRollout& rollout,
                                      Account& out);

}  // namespace gso
