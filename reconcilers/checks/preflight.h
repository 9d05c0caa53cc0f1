// Preflight: problems of the setup of a node and of its operands for the profile that the node should run, found before
// anything is changed. Pure functions of the objects; each finding has a stable code (docs/diagnostics.md).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reconcilers/checks/setup.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Every check of the chain that fails and is listed for nodes: errors (a component would exit, or never serve a GPU),
// warnings (a setting would be ignored, or labels would be wrong), infos (defects of the plugin's release that the
// operator works around). In the chain's order.
[[nodiscard]] std::vector<Diagnostic> run_preflight(const Setup& setup);

// Caches the answers for nodes with equal setups, and shares them as long as a node holds them.
class PreflightCache {
 public:
  using Answer = std::shared_ptr<const std::vector<Diagnostic>>;
  // Never null. Equal setups get the same object.
  Answer check(const Setup& setup);
  // Call this before operands move in memory.
  void clear() { answers_.clear(); }
  // The number of cached answers, including unused ones that are not swept yet.
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

 private:
  std::unordered_map<std::string, std::weak_ptr<const std::vector<Diagnostic>>> answers_;
  std::size_t sweep_at_ = 0;
};

}  // namespace gso
