// A fleet with the chart's DaemonSet of standalone MPS daemons beside its device plugin, and what that DaemonSet's
// controller does with a plan.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

using namespace std::chrono_literals;
using k8s::Interned;

inline const ObjectKey kDaemons{"gpu-sharing-operator", "gpu-sharing-operator-mps"};

// A fleet whose device plugin shares nothing, and the chart's DaemonSet beside it.
class StandaloneMps : public ::testing::Test {
 protected:
  void begin(int nodes, const std::string& mode = "run", const char* profile = "none");
  void put_daemonset();
  void new_template(const std::string& hash);
  void make_pod(const std::string& node);
  void end_pod(const std::string& node) { fleet->world.operand_pods.erase(pod_on(node)->meta.key()); }
  void replace_pod(const std::string& node) {
    end_pod(node);
    make_pod(node);
  }
  // A pod that uses a GPU of each of these nodes.
  void use(const std::vector<std::string>& nodes);
  // So many nodes, a client on n01, and a new template.
  void begin_with_a_client(int nodes = 1);
  // All nodes could be changed at once.
  void allow_all_at_once(int nodes);

  [[nodiscard]] const Pod* pod_on(const std::string& node) const;
  void set_ready(const std::string& node, bool ready);
  [[nodiscard]] std::string hash_on(const std::string& node) const;
  [[nodiscard]] int on(const std::string& hash) const;
  [[nodiscard]] int in_change() const;
  [[nodiscard]] std::string mark(const std::string& node) const;

  // One second: what is planned is done, and the DaemonSet's controller replaces pods that are deleted.
  void tick();
  void run(Duration span);
  [[nodiscard]] std::string finding(std::string_view reason) const;

  std::unique_ptr<FleetModel> fleet;
  Plan last;
  std::string approved;
  std::string report;                           // The termination message of new pods' init containers; empty: none.
  std::map<std::string, std::string> products;  // Of nodes with another one.
  bool crds = false;                            // Else the settings are the policy.
  bool without_gfd = false;
  bool broken = false;  // New pods do not become Ready.
  bool interrupts = false;
  int most_in_change = 0;

 private:
  std::string mode_;
  std::string hash_;
  std::int64_t revisions_ = 0;
  int pods_ = 0;
  [[nodiscard]] ContainerStatus finished_check() const;
};

}  // namespace gso::test
