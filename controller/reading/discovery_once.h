// Which kinds the API server serves, for one reading of a cluster: asked by one request, when the first kind is.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"

namespace gso {

class DiscoveryOnce {
 public:
  explicit DiscoveryOnce(k8s::Reader* client) : client_(client), answered_(client->clock()->make_signal()) {}
  // Several can ask at once. Errors: those of the request.
  boost::asio::awaitable<k8s::Result<bool>> served(k8s::Gvr gvr);

 private:
  k8s::Reader* client_;
  std::unique_ptr<k8s::Signal> answered_;
  bool asked_ = false;
  std::optional<k8s::Result<k8s::ServedKinds>> kinds_;
};

}  // namespace gso
