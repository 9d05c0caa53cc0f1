// Defaults and rules of pods and of pod templates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/sim/apiserver/status.h"

namespace gso::sim {

// Sets a member that is absent or null.
inline void set_default(nlohmann::json& object, const char* name, nlohmann::json value) {
  if (!object.contains(name) || object[name].is_null()) object[name] = std::move(value);
}

// Whether the pod has the condition Ready.
[[nodiscard]] bool is_ready(const nlohmann::json& pod);

// SetDefaults_PodSpec and what it calls, for a pod's spec or a template's.
void default_pod_spec(nlohmann::json& spec);
// What admission adds to pods only: service account, tolerations, priority.
void admit_pod_spec(nlohmann::json& spec);
// `path` is "spec" or "spec.template.spec".
void validate_pod_spec(const nlohmann::json& spec, const std::string& path, FieldErrors& errors);
// Only images, deadlines and added tolerations may change.
void validate_pod_update(const nlohmann::json& pod, const nlohmann::json& old, FieldErrors& errors);
// "Guaranteed", "Burstable" or "BestEffort".
[[nodiscard]] std::string qos_class(const nlohmann::json& spec);

}  // namespace gso::sim
