// KAI's two CRDs, reduced to what the operator reads, and the objects of a small cluster that runs KAI.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8sclient/value/object.h"

namespace gso::sim {

using Json = nlohmann::json;

[[nodiscard]] std::string kai_config_crd();
[[nodiscard]] std::string kai_bind_request_crd();
[[nodiscard]] Json kai_namespace(const std::string& name);
[[nodiscard]] Json kai_node(const std::string& name);
// allocationTimeout 10 s, volumeBindingTimeoutSeconds 20: binds are short, so that schedules are.
[[nodiscard]] Json kai_config();
[[nodiscard]] Json kai_binder();
[[nodiscard]] Json kai_binder_status(bool available, const std::string& since);
[[nodiscard]] Json kai_reservation(const std::string& name, const std::string& group, const std::string& node);
[[nodiscard]] Json kai_fraction_pod(const std::string& name, int devices, const std::string& scheduler);
[[nodiscard]] Json kai_bind_request(const Json& pod, const std::string& node, const std::vector<std::string>& groups,
                                    bool new_field);

inline const k8s::Gvr kBindRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};
inline constexpr const char* kReservations = "kai-resource-reservation";
inline constexpr const char* kTeam = "team";

}  // namespace gso::sim
