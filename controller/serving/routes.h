// Which path answers what: /healthz, /livez and /readyz, /metrics, /debug. Answers read memory only, so a probe never
// waits for reconciliation; /metrics alone can wait, for the API server to say whether the scraper is allowed to read
// it (ScrapeAccess).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
#include "k8sclient/api/writer.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"

namespace gso {

// One probe's answer: `ok` gives 200, else 500. The text names what is missing.
struct ProbeAnswer {
  bool ok = true;
  std::string text = "ok";
};

// The answer to a request that is not allowed; nothing if it is.
using AccessCheck = std::function<boost::asio::awaitable<std::optional<HttpAnswer>>(HttpRequest)>;

struct Routes {
  std::function<ProbeAnswer()> ready;  // Empty: no probes here. Else `live`, too.
  std::function<ProbeAnswer()> live;
  std::shared_ptr<Metrics> metrics;  // Null: no /metrics here.
  // With it pages of /metrics are rendered five times a second at most, after twenty at once: who asks more often gets
  // the last one. Must outlive the handler.
  k8s::Clock* clock = nullptr;
  AccessCheck metrics_access;  // Empty: everybody may read /metrics.
  DebugHandler debug;          // Empty: no /debug here.
};

// A handler for HttpServer. The routes live as long as it.
[[nodiscard]] HttpHandler make_handler(Routes routes);

// --- Who may read /metrics: asks the API server who the client is (TokenReview, or its client certificate) and
// whether it may `get` that non-resource URL (SubjectAccessReview), as controller-runtime's metrics filter does.
// Bounded: answers are remembered (by a hash of the token, never the token), so many, for so long; few questions are
// open at once, and few are asked a second. In doubt the answer is no.

// How long and how many answers are remembered, and how many questions are asked.
struct ScrapeAccessLimits {
  k8s::Duration allowed_for = std::chrono::minutes(1);
  k8s::Duration refused_for = std::chrono::seconds(10);
  std::size_t most_remembered = 256;
  std::size_t most_open = 4;
  double per_second = 5;
  double burst = 20;
  k8s::Duration timeout = std::chrono::seconds(10);  // Of one question.
};

class ScrapeAccess {
 public:
  // `client` and `clock` must outlive the object. A client of its own: its questions must not wait behind the
  // operator's writes, nor these behind them.
  ScrapeAccess(k8s::Writer* client, k8s::Clock* clock, ScrapeAccessLimits limits = {});

  // Nothing if the client may; else 401 without credentials or with bad ones, 403 if it lacks the right, 429 over the
  // limits, 503 if the API server does not say.
  boost::asio::awaitable<std::optional<HttpAnswer>> check(HttpRequest request);

  [[nodiscard]] std::size_t remembered() const { return answers_.size(); }

 private:
  struct Verdict {
    Verdict() = default;
    int status = 200;
    std::string text;  // The answer to a refused client.
    k8s::MonoTime until;
  };
  boost::asio::awaitable<Verdict> ask(HttpRequest request);
  // user, uid, groups and extra, as the spec of a SubjectAccessReview has them; null: nobody.
  boost::asio::awaitable<k8s::Result<nlohmann::json>> identify(HttpRequest request);
  boost::asio::awaitable<k8s::Result<bool>> may_get(nlohmann::json account, std::string path);
  // The status of the answer to such a review. Errors: `decode` if it has none.
  boost::asio::awaitable<k8s::Result<nlohmann::json>> review(k8s::Gvr resource, const char* kind, nlohmann::json spec);
  void remember(const std::string& key, const Verdict& verdict);

  k8s::Writer* client_;
  k8s::Clock* clock_;
  ScrapeAccessLimits limits_;
  k8s::TokenBucket questions_;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
  std::map<std::string, Verdict> answers_;  // By the hash of the credentials and the path.
};

}  // namespace gso
