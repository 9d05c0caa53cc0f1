// References to the objects that findings and Events are about.
#pragma once

#include <string>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/policy.h"

namespace gso {

[[nodiscard]] ObjectRef node_ref(const std::string& name);
[[nodiscard]] ObjectRef config_map_ref(const k8s::ObjectKey& key);
[[nodiscard]] ObjectRef daemonset_ref(const k8s::ObjectKey& key);
[[nodiscard]] ObjectRef pod_ref(const k8s::ObjectMeta& meta);
[[nodiscard]] ObjectRef policy_ref(const SharingPolicy& policy);

}  // namespace gso
