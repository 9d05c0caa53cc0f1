// See routes.h.
#include "controller/serving/routes.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/backoff.h"

namespace gso {
namespace {

namespace asio = boost::asio;

HttpAnswer probe_answer(const ProbeAnswer& probe) {
  return text_answer(probe.ok ? 200 : 500, probe.text + "\n");
}

struct Served {
  Routes routes;
  k8s::TokenBucket renders{5, 20};
  std::map<Metrics::Format, std::string> pages;  // The last ones.
};

HttpAnswer metrics_answer(Served& served, std::string_view accept) {
  const auto format = accept.find("application/openmetrics-text") != std::string_view::npos
                          ? Metrics::Format::openmetrics
                          : Metrics::Format::prometheus;
  std::string& page = served.pages[format];
  k8s::Clock* const clock = served.routes.clock;
  if (page.empty() || clock == nullptr || served.renders.try_take(clock->monotonic())) {
    page = served.routes.metrics->render(format);
  }
  return {200, Metrics::content_type(format), page};
}

HttpAnswer debug_answer(const Routes& routes, std::string_view path, bool put) {
  DebugAnswer debug = routes.debug({path, put});
  return {debug.status, "application/json", std::move(debug.json)};
}

HttpAnswer not_allowed() {
  HttpAnswer answer = text_answer(405, "only GET and HEAD\n");
  answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

HttpAnswer not_found(const Routes& routes) {
  std::string known = routes.ready ? "/healthz, /livez, /readyz" : "";
  if (routes.metrics != nullptr) known += (known.empty() ? "" : ", ") + std::string("/metrics");
  if (routes.debug) {
    known += (known.empty() ? "" : ", ") + std::string("/debug/cache, …/queue, …/nodes/NAME, …/log-level");
  }
  return text_answer(404, "not found; available: " + known + "\n");
}

asio::awaitable<HttpAnswer> answer(std::shared_ptr<Served> served, HttpRequest request) {
  const Routes* const routes = &served->routes;
  const bool puts = request.method == "PUT";
  const bool gets = request.method == "GET" || request.method == "HEAD";
  const std::string path = request.path;
  if (routes->debug && path.starts_with("/debug/") && (gets || puts)) co_return debug_answer(*routes, path, puts);
  if (!gets) co_return not_allowed();
  if (routes->ready && (path == "/healthz" || path == "/livez")) co_return probe_answer(routes->live());
  if (routes->ready && path == "/readyz") co_return probe_answer(routes->ready());
  if (routes->metrics == nullptr || path != "/metrics") co_return not_found(*routes);
  const std::string accept = request.accept;
  if (routes->metrics_access) {
    std::optional<HttpAnswer> refused = co_await routes->metrics_access(std::move(request));
    if (refused) co_return *std::move(refused);
  }
  co_return metrics_answer(*served, accept);
}

}  // namespace

HttpHandler make_handler(Routes routes) {
  const auto served = std::make_shared<Served>();
  served->routes = std::move(routes);
  return [served](HttpRequest request) { return answer(served, std::move(request)); };
}

}  // namespace gso
