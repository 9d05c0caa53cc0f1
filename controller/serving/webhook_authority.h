// Keeps the caBundle of a ValidatingWebhookConfiguration equal to what the operator's own certificate authority
// publishes (certificate_secret.h): without it the API server trusts no answer of the webhook.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "k8sclient/api/reader.h"
#include "k8sclient/api/writer.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

class WebhookAuthority {
 public:
  struct Events {
    std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
    std::function<void()> worked = [] {};
    std::function<void()> written = [] {};
  };
  struct Parts {
    k8s::Reader* reader = nullptr;
    k8s::Writer* writer = nullptr;
    k8s::Clock* clock = nullptr;
    std::string configuration;                     // Its name. The operator is not allowed to create one.
    std::function<std::string()> authorities;      // PEM; empty until there are some.
    std::function<k8s::Result<void>()> may_write;  // Consulted just before each write: only the leader may.
    Events events;
  };
  // `reader`, `writer` and `clock` must outlive the object.
  explicit WebhookAuthority(Parts parts);

  // Looks again and again. Ends by cancellation only.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<k8s::Result<void>> look();

  Parts parts_;
  bool right_ = false;       // The last look found, or wrote, what was to be published then:
  std::string published_;    // this,
  k8s::MonoTime looked_at_;  // and when it began.
};

}  // namespace gso
