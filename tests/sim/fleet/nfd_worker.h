// Node Feature Discovery's worker, as far as features.d goes: where GPU feature discovery writes a file instead of a
// NodeFeature (USE_NODE_FEATURE_API=false, as on OpenShift), the worker looks once a minute and reports what it finds.
// A file that is away at that moment takes its labels off the node until the next look.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tests/sim/fleet/nfd_master.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class NfdWorker {
 public:
  // Both must outlive the worker.
  NfdWorker(Site* site, NfdMaster* master) : site_(site), master_(master) {}

  // The node's file was written, or removed.
  void file_changed(const std::string& node, std::optional<std::map<std::string, std::string>> content);

 private:
  void look(const std::string& node);
  void report(const std::string& node);
  [[nodiscard]] bool gap_is_to_be_seen(const std::string& node) const;
  void look_after(const std::string& node, k8s::Duration delay);

  Site* site_;
  NfdMaster* master_;
  std::map<std::string, std::optional<std::map<std::string, std::string>>> files_;  // By node.
  std::map<std::string, std::shared_ptr<int>> looks_;                               // The next one of each node.
  std::set<std::string> in_gap_;  // The last report was made while the file was away, because of the fault.
};

}  // namespace gso::sim
