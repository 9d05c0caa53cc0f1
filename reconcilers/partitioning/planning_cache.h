// Results that one pass shares with the next: they follow from their inputs alone.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reconcilers/partitioning/geometry.h"
#include "reconcilers/partitioning/packing.h"

namespace gso {

class PlanningCache {
 public:
  // pack(); the answer to one of the last few inputs is found instead of computed.
  [[nodiscard]] const Packing& packing(PackInput input);
  // read_profile() of a text that a ConfigMap has.
  [[nodiscard]] const std::optional<Geometry>& profile(const std::shared_ptr<const std::string>& text);

 private:
  std::list<std::pair<PackInput, Packing>> packings_;  // The newest first.
  // Keeps the texts, so that no other text gets their address.
  std::map<std::shared_ptr<const std::string>, std::optional<Geometry>> profiles_;
};

}  // namespace gso
