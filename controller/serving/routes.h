// Which path answers what: /healthz, /livez and /readyz, /metrics, /debug. Answers read memory only, so a probe never
// waits for reconciliation; /metrics alone can wait, for the API server to say whether the scraper is allowed to read
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
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
  AccessCheck metrics_access;                             // Empty: everybody may read /metrics.
  std::function<DebugAnswer(const DebugRequest&)> debug;  // Empty: no /debug here.
};

// A handler for HttpServer. The routes live as long as it.
[[nodiscard]] HttpHandler make_handler(Routes routes);

}  // namespace gso
