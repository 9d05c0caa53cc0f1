#include "controller/reading/list_objects.h"

#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso {

template boost::asio::awaitable<k8s::Result<ListedObjects<DaemonSet>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<DaemonSet> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<Node>>> list_objects(k8s::Reader*, k8s::Gvr, k8s::ListOptions,
                                                                               k8s::Result<Node> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<SharingPolicy>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingPolicy> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<SharingRollout>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingRollout> (*)(std::string_view));

}  // namespace gso
