// Who uses the keys of a ConfigMap with profiles, as far as the stores show it: what their removal would break.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Reads the stores once, however many keys are asked for: a ConfigMap can have a key for each of thousands of nodes.
class KeyUsers {
 public:
  KeyUsers(const World& world, const ObjectKey& config_map);
  // Nodes of the device plugins that mount the ConfigMap, if their label names the key; plugins whose default it is;
  // and SharingPolicies that name it. For people: "node a, DaemonSet b/c (DEFAULT_CONFIG) and policy d"; empty: nobody.
  [[nodiscard]] std::string of(const std::string& key) const;

 private:
  std::map<std::string, std::vector<std::string>> users_;  // Key -> for people.
};

}  // namespace gso
