// WaitNotice: one line on stderr when a person's command waits for the API server for more than a few seconds: for
// which request, and what the server answers meanwhile. It stands between the client and the connection, and knows
// both.
//
//   WaitNotice notice({.behind = &connection, .clock = clock, …});
//   k8s::ApiClient client(&notice, clock, …);
//   tasks.spawn(executor, notice.announce());
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"

namespace gso {

class WaitNotice final : public k8s::Transport {
 public:
  // A shorter wait is not worth a line.
  static constexpr k8s::Duration kPatience = std::chrono::seconds(5);
  struct Parts {
    k8s::Transport* behind = nullptr;
    k8s::Clock* clock = nullptr;
    std::string command;              // Begins the line.
    std::string server;               // "https://host:port"
    k8s::Duration request_timeout{};  // A request with its retries ends then.
    std::ostream* err = nullptr;
  };
  explicit WaitNotice(Parts parts) : parts_(std::move(parts)) {}

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override;
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override;

  // Writes the line once, when the command has waited for kPatience. Ends then, or by cancellation.
  boost::asio::awaitable<void> announce();
  // Nothing is written from now on: a live view shows by itself what cannot be read.
  void end() { ended_ = true; }

 private:
  struct Open {
    std::string what;  // "GET /api/v1/nodes"
    k8s::MonoTime since;
  };
  // A request from here to its answer, or to its cancellation.
  class Pending {
   public:
    Pending(WaitNotice* notice, const k8s::HttpRequest& request);
    ~Pending() { notice_->open_.erase(number_); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    void answered(int status) const;
    void failed(const k8s::Error& error) const;

   private:
    WaitNotice* notice_;
    std::uint64_t number_;
    std::string what_;
  };
  void note_failure(std::string failure);
  [[nodiscard]] std::optional<std::string> reason() const;

  Parts parts_;
  std::uint64_t requests_ = 0;
  std::map<std::uint64_t, Open> open_;  // The oldest first.
  std::optional<k8s::MonoTime> failing_since_;
  std::string failure_;
  bool ended_ = false;
};

}  // namespace gso
