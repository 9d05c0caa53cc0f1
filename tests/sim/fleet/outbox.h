// Outbox: the writes of one actor, sent one after the other. An actor says what it wants written and goes on; what the
// server answered comes back to `done`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "k8sclient/api/client.h"

namespace gso::sim {

struct Write {
  enum class Verb { create, update, merge_patch, remove } verb = Verb::merge_patch;
  k8s::Gvr gvr;
  k8s::ObjectKey key;
  std::string body = {};
  std::string subresource = {};
  k8s::DeleteOptions preconditions = {};
  // Called once, unless the actor is gone by then. A failure that may pass by itself (5xx, no answer) is not reported:
  // the write is sent again.
  std::function<void(const k8s::Result<std::string>&)> done = {};
};

// A DELETE with a uid precondition; `grace_period_seconds` absent: the pod's own.
[[nodiscard]] Write removal(k8s::Gvr gvr, k8s::ObjectKey key, std::string uid,
                            std::optional<std::int64_t> grace_period_seconds = std::nullopt);

class Outbox {
 public:
  Outbox(k8s::ApiClient* client, k8s::Clock* clock);
  void push(Write write);
  // Sends until stop().
  boost::asio::awaitable<void> run();
  void stop();

 private:
  boost::asio::awaitable<k8s::Result<std::string>> send(Write write);
  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  std::unique_ptr<k8s::Signal> wake_;
  std::deque<Write> queue_;
  bool stopping_ = false;
};

}  // namespace gso::sim
