// What differs between two profiles, field by field: for people who approve a change, to whom a revision says nothing.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/profile/profile.h"

namespace gso {

struct FieldChange {
  std::string field;   // sharing.mps.resources[nvidia.com/gpu].replicas
  std::string before;  // Empty: not set.
  std::string after;
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
};
// Fields that a component reads, by name. Empty if both mean the same.
[[nodiscard]] std::vector<FieldChange> profile_changes(const Profile& before, const Profile& after);

}  // namespace gso
