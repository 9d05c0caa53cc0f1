// Defaults and rules of pods and of pod templates.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tests/sim/apiserver/status.h"

namespace gso::sim {

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
