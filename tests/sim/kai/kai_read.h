// Reading KAI's objects as KAI does: the groups of a pod or BindRequest, whether a pod is alive.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/kai/kai_objects.h"

namespace gso::sim::kai_read {

inline const std::string kPrefix = "runai-gpu-group/";

// object[a][b], or null.
[[nodiscard]] const Json& at(const Json& object, const char* a, const char* b);
// The same as text; empty when it is none.
[[nodiscard]] std::string text(const Json& object, const char* a, const char* b);
// A pod of that group, by the plain label (one device, reservations) or the prefixed one (several devices).
[[nodiscard]] bool carries(const Json& pod, const std::string& group);
// The groups of a pod, or those that a BindRequest names.
[[nodiscard]] std::vector<std::string> groups_of(const Json& object);
// Whether the ConfigMap of a consumer says that it sees this GPU; true also where nothing says what it sees.
[[nodiscard]] bool sees(const Json* config_map, const std::string& gpu);
[[nodiscard]] std::string pod_path(const std::string& ns, const std::string& name, const std::string& sub = "");
[[nodiscard]] std::string request_path(const std::string& name);
[[nodiscard]] std::string config_map_path(const std::string& name = "");  // Of the team's namespace.
[[nodiscard]] bool alive(const Json& pod);
[[nodiscard]] bool terminating(const Json& pod);

}  // namespace gso::sim::kai_read
