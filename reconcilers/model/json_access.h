// Members of JSON values, and JSON that can be printed.
#pragma once

#include <string>
#include <string_view>

#include "k8sclient/value/json_access.h"

namespace gso {

// --- The readers of JSON from the cluster (k8sclient/value/json_access.h) under the names that planners and commands
// use.

using k8s::dump;
using k8s::flag_at;
using k8s::list_at;
using k8s::member_at;
using k8s::number_at;
using k8s::object_at;
using k8s::text_at;

// --- JSON that is printed: a terminal may be what shows it.

// The JSON text with the characters of message_text.h as "\u202e" where its strings have them. It is read back as the
// same values. Such an escape is one of YAML's double quotes too.
[[nodiscard]] std::string printable_json(std::string_view json);

}  // namespace gso
