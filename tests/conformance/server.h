// A server that sequences are played on: the simulated one in process, or one at the end of a connection.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"

namespace gso::conformance {

class Server {
 public:
  virtual ~Server() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual k8s::Transport& transport() = 0;
  [[nodiscard]] virtual k8s::Clock& clock() = 0;
  // Sequences that may be played at the same time.
  [[nodiscard]] virtual int jobs() const = 0;
  // Forgets past versions, so that a continue token of one of them is expired.
  virtual boost::asio::awaitable<k8s::Result<void>> forget_history() = 0;
  // Runs the work to its end, on this server's time.
  virtual void run(boost::asio::awaitable<void> work) = 0;
};

// In process, on simulated time that begins now. Its collectors are as slow as if there were none, as in a control
// plane of an API server alone.
[[nodiscard]] std::unique_ptr<Server> make_simulated_server();

struct RemoteServer {
  std::string kubeconfig;  // A file, or the address of a server without authentication ("http://127.0.0.1:8080").
  std::string etcd;        // "http://127.0.0.1:2379": where history is compacted. Empty: sequences that need it fail.
  int jobs = 8;
};
[[nodiscard]] k8s::Result<std::unique_ptr<Server>> make_remote_server(const RemoteServer& remote);

}  // namespace gso::conformance
