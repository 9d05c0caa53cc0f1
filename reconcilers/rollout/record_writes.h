// The record after a pass, in one write: the baseline, the outcomes of rollouts, and the last texts of each key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- Outcomes: writes verified and failed revisions, and what a person has stopped, into the record (outcomes.cc).

void plan_outcomes(Pass& pass);

// --- The baseline: what the fleet ran when the operator first read it, recorded once, so that an installation
// restarts nothing. The writes of the record, whatever their cause, are planned here too.

void plan_baseline(Pass& pass);
// With the record of operand namespaces that nothing names (cluster/discovery.h).
void report_chosen_namespaces(Pass& pass);
// A record exists, and plan_baseline() writes it in this pass: with the baseline of namespaces that had none.
[[nodiscard]] bool completes_baseline(const Pass& pass);

// Enters what the node's annotation shows as loaded: if somebody removes the annotation, the node still runs that, and
// is not restarted (S9). Unchanged if no annotation shows it, or the annotation names no key of a ConfigMap.
void enter_loaded(const Pass& pass, const NodeAssessment& assessment, MachineRecord& entry);

// Plans the writes after which the ConfigMaps of the record contain `next`.
void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message);
// The text of "namespace/configmap/key" if it still has that revision; empty otherwise.
[[nodiscard]] std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision);

// --- The last texts of each key, in the record: what pods have read that were created between two edits.

// FleetRecord::history as it must be now: with the present texts.
[[nodiscard]] std::map<std::string, std::vector<RecordedText>> present_history(const Pass& pass);
// A key of the record has another text now: it is recorded at once, because it can be taken back before anything else
// is, and kubelets show it to containers for a while after that.
[[nodiscard]] bool has_new_text(const Pass& pass);

// --- The record after this pass: what plan_outcomes() adds to it, in one write.

// Copied at the first change, because a record can hold thousands of nodes. The copy leaves out what nothing can need
// any more: keys that their ConfigMap lacks and that are on no node, their texts, and templates of DaemonSets that are
// gone.
class NextRecord {
 public:
  // The pass has a record, and outlives this.
  explicit NextRecord(const Pass& pass) : pass_(pass), before_(*pass.index.record) {}

  FleetRecord& change(std::string_view reason, const std::string& message);
  // The same for entries that are not outcomes: they are added to a write that is due anyway and use its reason.
  FleetRecord& note(std::string_view reason, const std::string& message) {
    const std::string_view due = reason_;
    FleetRecord& next = change(reason, message);
    if (!due.empty()) reason_ = due;
    return next;
  }

  // What nothing can need is a reason to write.
  void forget();

  [[nodiscard]] bool is_due() const { return next_.has_value(); }
  // As it is by now.
  [[nodiscard]] const FleetRecord& present() const { return next_ ? *next_ : before_; }
  // For entries that need no write of their own; is_due().
  [[nodiscard]] FleetRecord& due() { return *next_; }
  [[nodiscard]] std::string_view reason() const { return reason_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  const Pass& pass_;
  const FleetRecord& before_;
  std::optional<FleetRecord> next_;
  std::string_view reason_;
  std::string message_;
};

}  // namespace gso
