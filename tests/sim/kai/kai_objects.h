// KAI's two CRDs, reduced to what the operator reads, the objects of a small cluster that runs KAI, and the requests
// that make them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8sclient/transport/transport.h"
#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/sim_clock.h"

namespace gso::sim {

using Json = nlohmann::json;

[[nodiscard]] std::string kai_config_crd();
[[nodiscard]] std::string kai_bind_request_crd();
[[nodiscard]] Json kai_namespace(const std::string& name);
[[nodiscard]] Json kai_node(const std::string& name);
// allocationTimeout 10 s, volumeBindingTimeoutSeconds 20: binds are short, so that schedules are.
[[nodiscard]] Json kai_config();
[[nodiscard]] Json kai_binder_status(bool available, const std::string& since);
[[nodiscard]] Json kai_reservation(const std::string& name, const std::string& group, const std::string& node);
[[nodiscard]] Json kai_fraction_pod(const std::string& name, int devices, const std::string& scheduler);
[[nodiscard]] Json kai_bind_request(const Json& pod, const std::string& node, const std::vector<std::string>& groups,
                                    bool new_field);

// One request of KAI's own user. A body that is null is none. Returns the status.
int send_as_kai(ApiServer& server, k8s::Method method, const std::string& path, const Json& body,
                const std::string& type = "application/json");
// CRDs, namespaces, these nodes, kai-config, and a binder that has been available since then.
void install_kai(ApiServer& server, SimClock& clock, const std::vector<std::string>& nodes, k8s::WallTime since);

inline const k8s::Gvr kBindRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};
inline constexpr const char* kReservations = "kai-resource-reservation";
inline constexpr const char* kTeam = "team";

}  // namespace gso::sim
