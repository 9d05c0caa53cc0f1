// Which SharingRollouts a pass creates: one for each rollout that starts nodes or waits for an approval.
#pragma once

#include <set>
#include <string>

#include "reconcilers/rollout/rollout_view.h"

namespace gso {

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

}  // namespace gso
