// What a write of the operator to a ConfigMap makes of it, before the stores show the result.
#pragma once

#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan.h"

namespace gso {

// The ConfigMap as the write leaves it. `present`: what is stored; null: the write creates it. Without a
// resourceVersion, which only the API server gives.
[[nodiscard]] ConfigMap written(const ConfigMap* present, const WriteConfigMap& write);

}  // namespace gso
