// A k8s::Transport that ends in an ApiServer of the same process: one for each client, with an identity and faults of
// its own. Every exchange takes `latency` of the server's clock, so that simulated time moves and requests in flight
// overlap as they do over a network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "k8sclient/transport/transport.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/faults.h"

namespace gso::sim {

struct ClientIdentity {
  std::string user = "system:admin";
  std::string user_agent = "sim-client/v0";
  k8s::Duration latency = std::chrono::milliseconds(1);  // Of the way there; the answer takes no time.
  std::uint64_t fault_seed = 1;
};

// The server must outlive the transport and its streams.
class InProcessTransport final : public k8s::Transport {
 public:
  InProcessTransport(ApiServer& server, ClientIdentity identity);
  ~InProcessTransport() override;

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override;
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override;

  // Rules for what goes wrong from now on.
  [[nodiscard]] Faults& faults();
  // Cuts all open streams, as a lost connection does.
  void reset_streams();
  // From now on (until true again) nothing reaches the server: requests fail, streams break.
  void set_connected(bool connected);
  // Requests sent, watches included.
  [[nodiscard]] std::uint64_t requests() const;
  // Called with each of them from now on, whatever becomes of it.
  void set_request_listener(std::function<void(const k8s::HttpRequest&)> listener);

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with exchanges and streams in progress.
};

}  // namespace gso::sim
