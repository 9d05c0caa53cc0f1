#include "controller/commands/rollout/undo_effect.h"

#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "controller/commands/shared/print_line.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/stop_command.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/gates.h"

namespace gso {
namespace {

// What starts no node until a person, a calendar or another profile ends that; open: nothing of the kind.
GateState lasting_stop(const RolloutView& rollout) {
  GateState ended = ended_by(rollout);
  if (!ended.is_open()) return ended;
  const GateState& gate = rollout.gate();
  return outlasts_retry(gate.gate) ? gate : GateState();
}

void print_stop(const RolloutView& rollout, const GateState& stop, std::int64_t count, std::ostream& out) {
  std::string command = stop_command(rollout);
  if (command.empty()) command = start_command(rollout.key.policy, {});
  const bool one = count == 1;
  print_line(out, "{} of policy {} {} not start ({}): {}. To start {}: {}", counted(count, "node"), rollout.key.policy,
             one ? "does" : "do", stop.reason(), stop.message, one ? "it" : "them", command);
}

}  // namespace

void print_what_follows(const RolloutCall& call, const Undo& undo, std::ostream& out) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  ReadingPass pass(call.world, index, call.settings, call.clock->now());
  for (const auto& [key, rollout_nodes] : index.impl().profile_rollouts) {
    if (key.config_map != undo.config_map || key.key != undo.key) continue;
    const std::int64_t count = rollout_nodes.tally.of(Phase::pending) + rollout_nodes.tally.moving();
    const RolloutView* rollout = count > 0 ? pass.rollout(key) : nullptr;
    if (rollout == nullptr) continue;
    if (const GateState stop = lasting_stop(*rollout); !stop.is_open()) {
      print_stop(*rollout, stop, count, out);
      continue;
    }
    const bool was_paused = undo.rollout != nullptr && undo.rollout->paused && undo.rollout->policy == key.policy;
    print_line(out,
               "{} of policy {} then {} to it without a resume{}. To prevent that: gpu-sharing-operator rollout "
               "pause policy/{}",
               counted(count, "node"), key.policy, count == 1 ? "changes" : "change",
               was_paused ? fmt::format("; the pause of {} does not stop that", undo.rollout->meta.name) : "",
               key.policy);
  }
}

}  // namespace gso
