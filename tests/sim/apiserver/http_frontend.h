// The simulated API server over HTTP/1.1 without TLS: kubectl, curl and the real operator binary talk to it. Identity
// is taken on trust: a bearer token is the user's name, no token is "system:admin". GET /kubeconfig answers a
// kubeconfig with the address by which the request came.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/sim/apiserver/api_server.h"

namespace gso::sim {

// Listens from construction to stop(). Runs on the server's thread; the server must outlive the
// io_context's last run.
class HttpFrontend {
 public:
  // `address` is an IP address of this machine. Port 0 takes any free port. Throws boost::system::system_error when it
  // cannot listen there.
  HttpFrontend(boost::asio::any_io_executor executor, ApiServer& server, std::uint16_t port = 0,
               const std::string& address = "127.0.0.1");
  ~HttpFrontend();
  HttpFrontend(const HttpFrontend&) = delete;
  HttpFrontend& operator=(const HttpFrontend&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  // "http://127.0.0.1:12345", also where it listens on all addresses.
  [[nodiscard]] std::string url() const;
  // A kubeconfig with one context for that user.
  [[nodiscard]] std::string kubeconfig(const std::string& user = "system:admin") const;
  // Accepts no more connections and closes those that are open.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with the connections' coroutines.
};

}  // namespace gso::sim
