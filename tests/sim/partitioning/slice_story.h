// A cluster with Nebuly's fork, its gpu-agent, a scheduler and the operator, in virtual time, and a judge that looks at
// each write: a label names a key that is there and holds every slice in use, keys of others stay, nothing but labels,
// keys and the operator's record is written, and no pod that ran is disturbed.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/fleet/nos_install.h"
#include "tests/sim/fleet/slice_config.h"
#include "tests/sim/fleet/test_cluster.h"
#include "tests/sim/story/in_process_operator.h"

namespace gso::sim {

class SliceStory : public TestCluster {
 public:
  // `nodes`: name -> what GPUs it has. Each begins with the label of nos and, if `slices` has it, with these under the
  // key "nos-<name>".
  SliceStory(const std::vector<NodeSpec>& nodes, const std::map<std::string, SliceCounts>& slices,
             std::uint64_t seed = 1);
  ~SliceStory();

  void start_operator(const OperatorSettings& more = {});
  void kill_operator();
  // A pod of one container with one slice, for the scheduler to place.
  void ask(const std::string& pod, std::int64_t gigabytes);
  void end(const std::string& pod);
  [[nodiscard]] std::string phase_of(const std::string& pod) const;
  // Its node; empty: none.
  [[nodiscard]] std::string place_of(const std::string& pod) const;
  [[nodiscard]] bool runs(const std::string& pod, k8s::Duration limit = std::chrono::minutes(10));
  [[nodiscard]] std::set<std::string> keys() const;
  // An Event about the object with that reason and text.
  [[nodiscard]] bool event_says(const std::string& object, const std::string& reason, const std::string& mention) const;

  // The same, within a minute: Events are sent beside the passes.
  [[nodiscard]] bool hears(const std::string& object, const std::string& reason, const std::string& mention);
  // How often the object was sent an Event of that reason, those of a series included.
  [[nodiscard]] std::uint64_t events_of(const std::string& object, const std::string& reason) const;

  // What went wrong first; empty: nothing.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // Writes of the operator but those of Leases and Events.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  // How often the operator has moved the node's label.
  [[nodiscard]] std::uint64_t moves(const std::string& node) const;
  // Lets an hour pass and fails the test if the operator writes anything in its second half.
  void expect_silence();
  [[nodiscard]] std::string record() const { return trouble_ + "\nThe operator's log:\n" + op.recent_log(); }

  InProcessTransport operator_transport;
  InProcessOperator op;

 private:
  void judge(const AuditEntry& entry);
  void judge_node(const AuditEntry& entry);
  void judge_release(const std::string& name, const nlohmann::json& after);
  void judge_config_map(const AuditEntry& entry);
  void judge_pod(const AuditEntry& entry);
  void wrong(const std::string& what);

  std::string trouble_;
  std::uint64_t writes_ = 0;
  std::map<std::string, std::uint64_t> moves_;
  std::map<std::string, std::string> before_;  // Of nodes that were moved: the key that their label named first.
  std::set<std::string> ran_at_move_;          // Uids of pods that held a slice when a label moved.
};

}  // namespace gso::sim
