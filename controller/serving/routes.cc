#include "controller/serving/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "k8sclient/api/discovery.h"
#include "k8sclient/value/encoding.h"
#include "k8sclient/value/error.h"
#include "reconcilers/model/json_access.h"

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
  if (page.empty() || clock == nullptr || served.renders.try_take(clock->monotonic()))
    page = served.routes.metrics->render(format);
  return {200, Metrics::content_type(format), page};
}

HttpAnswer not_allowed() {
  HttpAnswer answer = text_answer(405, "only GET and HEAD\n");
  answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

HttpAnswer not_found(const Routes& routes) {
  std::vector<std::string_view> known;
  if (routes.ready) known.emplace_back("/healthz, /livez, /readyz");
  if (routes.metrics != nullptr) known.emplace_back("/metrics");
  if (routes.debug) known.emplace_back("/debug/cache, …/queue, …/nodes/NAME, …/log-level");
  return text_answer(404, fmt::format("not found; available: {}\n", fmt::join(known, ", ")));
}

asio::awaitable<HttpAnswer> answer(std::shared_ptr<Served> served, HttpRequest request) {
  const Routes* const routes = &served->routes;
  const bool puts = request.method == "PUT";
  const bool gets = request.method == "GET" || request.method == "HEAD";
  const std::string path = request.path;
  if (routes->debug && path.starts_with("/debug/") && (gets || puts)) co_return routes->debug(request);
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

namespace {

using Json = nlohmann::json;

const k8s::Gvr& token_reviews() {
  static const k8s::Gvr kReviews("authentication.k8s.io", "v1", "tokenreviews");
  return kReviews;
}
const k8s::Gvr& access_reviews() {
  static const k8s::Gvr kReviews("authorization.k8s.io", "v1", "subjectaccessreviews");
  return kReviews;
}

// RFC 6750: the scheme's case does not matter.
std::string bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (k8s::lower(header.substr(0, kScheme.size())) != kScheme) return {};
  return std::string(header.substr(kScheme.size()));
}

// Credentials and path as one text that no other ones have.
std::string credentials_of(const HttpRequest& request) {
  if (request.client)
    return dump(Json::array({"certificate", request.client->user, request.client->groups, request.path}));
  return dump(Json::array({"token", bearer_token(request.authorization), request.path}));
}

}  // namespace

ScrapeAccess::ScrapeAccess(k8s::Writer* client, k8s::Clock* clock, ScrapeAccessLimits limits)
    : client_(client), clock_(clock), limits_(limits), questions_(limits.per_second, limits.burst) {}

asio::awaitable<std::optional<HttpAnswer>> ScrapeAccess::check(HttpRequest request) {
  if (!request.client && bearer_token(request.authorization).empty()) {
    HttpAnswer answer = text_answer(401, "send a bearer token, or a client certificate\n");
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    co_return answer;
  }
  const std::string key = k8s::sha256(credentials_of(request));
  const k8s::MonoTime now = clock_->monotonic();
  const auto known = answers_.find(key);
  Verdict verdict;
  if (known != answers_.end() && now < known->second.until) {
    verdict = known->second;
  } else if (*open_ >= limits_.most_open || !questions_.try_take(now)) {
    co_return text_answer(429, "too many clients ask at once; try again\n");
  } else {
    ++*open_;
    const k8s::AtEnd closes([open = open_] { --*open; });  // The coroutine can be destroyed after its ScrapeAccess.
    verdict = co_await ask(std::move(request));
    remember(key, verdict);
  }
  if (verdict.status == 200) co_return std::nullopt;
  co_return text_answer(verdict.status, verdict.text + "\n");
}

asio::awaitable<ScrapeAccess::Verdict> ScrapeAccess::ask(HttpRequest request) {
  Verdict out;
  const std::string path = request.path;
  const k8s::Result<Json> account = co_await identify(std::move(request));
  k8s::Result<bool> allowed = false;
  if (account && !account->is_null()) allowed = co_await may_get(*account, path);
  if (!account || !allowed) {
    out.status = 503;
    out.text = "the API server does not say whether this client is allowed: " +
               (account ? allowed.error() : account.error()).message;
    co_return out;  // Not remembered: `until` has passed.
  }
  if (account->is_null()) {
    out.status = 401;
    out.text = "the API server does not know these credentials";
  } else if (!*allowed) {
    out.status = 403;
    out.text =
        fmt::format("{} is not allowed to get {}: bind it to a ClusterRole with nonResourceURLs: [{}] and verbs: [get]",
                    text_at(*account, "user"), path, path);
  }
  out.until = clock_->monotonic() + (out.status == 200 ? limits_.allowed_for : limits_.refused_for);
  co_return out;
}

asio::awaitable<k8s::Result<Json>> ScrapeAccess::identify(HttpRequest request) {
  Json out;
  if (request.client) {
    out["user"] = request.client->user;
    out["groups"] = request.client->groups;
    out["groups"].push_back("system:authenticated");
    co_return out;
  }
  Json spec{{"token", bearer_token(request.authorization)}};
  const k8s::Result<Json> status = co_await review(token_reviews(), "TokenReview", std::move(spec));
  if (!status) co_return std::unexpected(status.error());
  const Json user = object_at(*status, "user");
  const std::string name = text_at(user, "username");
  if (!flag_at(*status, "authenticated") || name.empty()) co_return out;
  out["user"] = name;
  for (const char* field : {"uid", "groups", "extra"})
    if (const Json* const value = member_at(user, field)) out[field] = *value;
  co_return out;
}

asio::awaitable<k8s::Result<bool>> ScrapeAccess::may_get(Json account, std::string path) {
  account["nonResourceAttributes"] = {{"path", path}, {"verb", "get"}};
  const k8s::Result<Json> status = co_await review(access_reviews(), "SubjectAccessReview", std::move(account));
  if (!status) co_return std::unexpected(status.error());
  co_return flag_at(*status, "allowed") && !flag_at(*status, "denied");
}

asio::awaitable<k8s::Result<Json>> ScrapeAccess::review(k8s::Gvr resource, const char* kind, Json spec) {
  k8s::WriteOptions options;
  options.deadline = clock_->monotonic() + limits_.timeout;
  options.max_retries = 0;
  std::string body =
      dump(Json{{"apiVersion", k8s::group_version(resource)}, {"kind", kind}, {"spec", std::move(spec)}});
  const k8s::Result<std::string> answer =
      co_await client_->create(resource, std::string(), std::move(body), std::move(options));
  if (!answer) co_return std::unexpected(answer.error());
  const Json reviewed = Json::parse(*answer, nullptr, false);
  const Json* const status = member_at(reviewed, "status");
  if (status == nullptr)
    co_return k8s::fail(k8s::Reason::decode, fmt::format("the answer to {} has no status", resource.resource));
  co_return *status;
}

void ScrapeAccess::remember(const std::string& key, const Verdict& verdict) {
  const k8s::MonoTime now = clock_->monotonic();
  if (verdict.until <= now) return;
  std::erase_if(answers_, [now](const auto& entry) { return entry.second.until <= now; });
  if (answers_.size() >= limits_.most_remembered) {
    // Whoever floods with bad tokens pushes out no one that is allowed.
    std::erase_if(answers_, [](const auto& entry) { return entry.second.status != 200; });
    if (answers_.size() >= limits_.most_remembered) return;
  }
  answers_[key] = verdict;
}

}  // namespace gso
