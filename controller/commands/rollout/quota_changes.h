// Which ResourceQuotas and queues mean something else once a change of profiles is rolled out: for `diff`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/reader.h"
#include "reconcilers/explain/what_if.h"

namespace gso {

// What the nodes that change offer of a resource, together.
struct OfferChange {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
// By resource; those that stay as they are left out.
[[nodiscard]] std::map<std::string, OfferChange> offer_changes(const World& world,
                                                               const std::vector<NodeDifference>& differences);

struct QuotaChange {
  std::string object;  // "ResourceQuota team-a/gpus", "KAI queue research", "Kueue ClusterQueue shared"
  std::string field;   // "requests.nvidia.com/gpu=8"
  std::string resource;
};
// Of one object (its JSON), by its resource: "resourcequotas", "queues" (KAI), "clusterqueues" (Kueue). Others have
// none.
[[nodiscard]] std::vector<QuotaChange> quotas_in(std::string_view resource, std::string_view json,
                                                 const std::map<std::string, OfferChange>& offers);
// Quotas that count one of these resources. KAI's queues count whole GPUs, each one nvidia.com/gpu.
// `incomplete` gets the resources that the caller is not allowed to read; an API that is not served has no queues.
boost::asio::awaitable<std::vector<QuotaChange>> quota_changes(k8s::Reader* client,
                                                               std::map<std::string, OfferChange> offers,
                                                               std::vector<std::string>* incomplete);

}  // namespace gso
