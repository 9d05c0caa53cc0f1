#include "controller/reading/list_objects.h"

#include <utility>

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

boost::asio::awaitable<k8s::Result<bool>> DiscoveryOnce::served(k8s::Gvr gvr) {
  if (!std::exchange(asked_, true)) {
    const k8s::CallOptions call;
    k8s::Result<k8s::ServedKinds> answer = co_await client_->discover(call);
    kinds_.emplace(std::move(answer));
    answered_->notify();
  }
  while (!kinds_) (void)co_await answered_->wait();
  const k8s::Result<k8s::ServedKinds>& kinds = *kinds_;
  // Rights that were narrowed can keep the list of all kinds from a person, and not the document of a group.
  if (!kinds && kinds.error().reason != k8s::Reason::forbidden) co_return std::unexpected(kinds.error());
  const std::optional<bool> known = kinds ? kinds->serves(gvr) : std::nullopt;
  if (known) co_return *known;
  const k8s::CallOptions call;
  const k8s::Result<bool> served = co_await client_->served(gvr, call);
  co_return served;
}

}  // namespace gso
