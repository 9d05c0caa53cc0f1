// SharingRollouts: which ones a pass creates, which attempt one stands for, and what the one of a standalone daemon's
// template reports.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// --- The rollout of one template to standalone MPS daemons, as a pass has left it: what its SharingRollout reports.
// The planner of standalone/ fills it, and status/ writes it.

// The nodes of one policy and DaemonSet.
struct DaemonRollout {
  std::string target;  // controller-revision-hash of the newest template.
  std::int64_t total = 0;
  std::int64_t updated = 0;    // Serve with that template, and are in no change.
  std::int64_t in_change = 0;  // Without those that failed.
  std::int64_t pending = 0;    // Have an older template, and are not in a change yet.
  std::int64_t blocked = 0;    // The same, and somebody holds them.
  std::int64_t failed = 0;
  std::int64_t wave = 0;  // 0: the canary.
  GateState gate;         // Why no node starts.
  // Nodes that failed, are held or wait: as in the status of a SharingRollout.
  struct Row {
    std::string name;
    std::string_view state;
    Reason why;
  };
  std::vector<Row> nodes;
};
// Why it stops after nodes have failed, and what to do.
[[nodiscard]] inline std::string why_failed(const DaemonRollout& rollout) {
  std::vector<std::string> names;
  for (const DaemonRollout::Row& row : rollout.nodes) {
    if (row.state == kStateFailed) names.push_back(row.name);
  }
  return fmt::format("{}{} failed. Correct the chart's standaloneMps values (helm upgrade), or the node",
                     counted(rollout.failed, "node"), names.empty() ? "" : fmt::format(" ({})", first_names(names)));
}
using DaemonRollouts = std::map<RolloutKey, DaemonRollout>;

// --- Which SharingRollouts a pass creates: one for each rollout that starts nodes or waits for an approval.

class RolloutObjects {
 public:
  // `pass` must outlive it.
  explicit RolloutObjects(Pass& pass) : pass_(pass) {}

  // Plans the SharingRollout of that revision, unless it exists, this pass has planned it already, or the CRDs are not
  // served. A stop that the record keeps for it is set in the new object.
  void ensure(const RolloutView& rollout, const std::string& target);
  // The same of a rollout of another kind. `profile`: the text that it rolls out; empty: none, or too long.
  void ensure(const RolloutKey& key, const std::string& target, const std::string& profile);

 private:
  Pass& pass_;
  std::set<std::string> made_;
};

// --- Attempts: if another revision replaces a rollout and the first one later returns, or if nodes wait for another
// template (OnDelete) than the one that a rollout ended with or its switches were set for, that is a new attempt with
// its own switches and times.

// Another revision has replaced the rollout since it began. If one of its switches was set, the record decides;
// otherwise its status does.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // According to its status.
// DaemonSet ("namespace/name") -> hash of its newest template, as far as known. Whatever the updateStrategy is: it can
// be switched in the middle of a rollout, and that makes no template another one.
[[nodiscard]] std::map<std::string, std::string> templates_of(const PluginInstallation& installation);
// The same as one text, for the record.
[[nodiscard]] std::string templates_text(const PluginInstallation& installation);
// The operator replaces pods for another template (OnDelete) than the one that such a text names. A template that is
// unknown, then or now, is no reason.
[[nodiscard]] bool has_other_templates(const PluginInstallation& installation, std::string_view then);
// Its nodes wait for another template than the one that an approval or abort was set for. A template that is unknown,
// then or now, is no reason. A pause stays in effect until a person ends it, whatever template comes.
[[nodiscard]] bool is_of_other_templates(const Index& index, const ProfileRollout& profile_rollout,
                                         const SharingRollout& rollout);
// Nodes wait for the rollout although another revision had replaced it, or although it had ended, or its switches were
// set, before a new template arrived (OnDelete). An undo stays in effect.
[[nodiscard]] bool begins_anew(const Index& index, const ProfileRollout& profile_rollout,
                               const SharingRollout& rollout);
// The same without is_of_other_templates(): what the object and its status alone show.
[[nodiscard]] bool ended_earlier(const Index& index, const ProfileRollout& profile_rollout,
                                 const SharingRollout& rollout);

}  // namespace gso
