// Members of JSON values: the readers of JSON from the cluster (k8sclient/value/json_access.h) under the names that
// planners and commands use.
#pragma once

#include "k8sclient/value/json_access.h"

namespace gso {

using k8s::dump;
using k8s::flag_at;
using k8s::list_at;
using k8s::member_at;
using k8s::number_at;
using k8s::object_at;
using k8s::text_at;

}  // namespace gso
