#include "k8sclient/api/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "k8sclient/api/status.h"

namespace k8s {
namespace {

namespace asio = boost::asio;

std::string what_of(std::string_view verb, const Gvr& gvr, const ObjectKey& key) {
  return fmt::format("{} {} {}", verb, gvr.resource, to_string(key));
}
std::string what_of(std::string_view verb, const Gvr& gvr, std::string_view ns) {
  return ns.empty() ? fmt::format("{} {}", verb, gvr.resource) : fmt::format("{} {} in {}", verb, gvr.resource, ns);
}

std::string watch_path(const Gvr& gvr, const WatchOptions& options) {
  const bool initial = options.send_initial_events;
  return collection_path(gvr, options.ns) + query_text({{"watch", "true"},
                                                        {"labelSelector", options.label_selector.to_string()},
                                                        {"fieldSelector", options.field_selector.to_string()},
                                                        {"resourceVersion", options.resource_version},
                                                        {"allowWatchBookmarks", "true"},
                                                        {"timeoutSeconds", std::to_string(options.timeout.count())},
                                                        {"sendInitialEvents", initial ? "true" : ""},
                                                        {"resourceVersionMatch", initial ? "NotOlderThan" : ""}});
}

std::chrono::milliseconds attempt_timeout(std::chrono::milliseconds most, MonoTime now, MonoTime deadline) {
  if (deadline == MonoTime::never()) return most;
  // Rounded up: a rest below a millisecond must not become "no timeout".
  return std::min(most, std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
}

AdaptiveLimitSettings lane_settings(int most, Duration longest_pause) {
  AdaptiveLimitSettings out;
  out.most = std::max(1, most);
  out.start = std::min(out.start, out.most);
  out.longest_pause = longest_pause;
  return out;
}

}  // namespace

ApiClient::ApiClient(Transport* transport, Clock* clock, ClientOptions options)
    : transport_(transport),
      clock_(clock),
      options_(std::move(options)),
      jitter_(options_.seed),
      reads_(std::make_shared<RequestLane>(clock, lane_settings(options_.most_reads, options_.longest_pause))) {
  const std::array<int, kWriteKinds> most{8, options_.most_writes, 8, 2};  // In the order of WriteKind.
  for (std::size_t kind = 0; kind < most.size(); ++kind) {
    const int places = std::min(most.at(kind), options_.most_writes);
    writes_.at(kind) = std::make_shared<RequestLane>(clock, lane_settings(places, options_.longest_pause));
  }
}

ApiClient::~ApiClient() {
  reads_->close();
  for (const auto& lane : writes_) lane->close();
}

void ApiClient::record(const Call& call, int status, std::string_view date, MonoTime begun, bool retry) {
  if (status > 0 && status < 500) ++answers_;
  if (!options_.on_request) return;
  options_.on_request({call.verb, call.resource, status, clock_->monotonic() - begun, retry, date});
}

// Whether the same call may be sent again after `error`.
bool ApiClient::may_retry(const Call& call, const Error& error) {
  if (error.reason == Reason::too_many_requests) return call.retry_429;
  if (call.write) return error.http_status == 503 && error.retry_after.has_value();
  return error.reason == Reason::transport || error.reason == Reason::timeout || error.http_status >= 500;
}

asio::awaitable<Result<void>> ApiClient::wait_before_retry(Duration delay) {
  bool cancelled = false;
  try {
    co_await clock_->sleep_for(delay);
  } catch (const boost::system::system_error&) {
    cancelled = true;
  }
  if (cancelled) co_return fail(Reason::cancelled, "cancelled while waiting to retry");
  co_return Result<void>{};
}

// Which end of a request says that the server has too much to do, or is broken: an answer, or none in time. The refusal
// of a PodDisruptionBudget says nothing about the server. Nor does a connection that cannot be made or breaks (restart,
// GOAWAY, load balancer): the server is away, and each call backs off by itself.
bool ApiClient::is_overload(const Error& error) {
  if (refused_by_budget(error)) return false;
  return error.reason == Reason::too_many_requests || error.reason == Reason::timeout || error.http_status >= 500;
}

asio::awaitable<ApiClient::Attempt> ApiClient::attempt(std::shared_ptr<const Call> call, bool retry) {
  std::shared_ptr<RequestLane::Place> place;
  if (call->request.channel != Channel::lease) {
    const std::shared_ptr<RequestLane>& lane =
        call->write ? writes_.at(static_cast<std::size_t>(*call->write)) : reads_;
    place = std::make_shared<RequestLane::Place>(lane);
    Result<void> turn = co_await lane->enter(place, call->deadline);
    if (!turn) co_return Attempt{std::unexpected(prefixed(call->what, turn.error())), false};
  }
  const MonoTime begun = clock_->monotonic();
  if (begun >= call->deadline) {  // Its turn came with the deadline.
    Error late{Reason::timeout, 0, call->what + ": the deadline passed before it was sent"};
    late.never_sent = true;
    co_return Attempt{std::unexpected(late), false};
  }
  if (call->before_send) {
    Result<void> allowed = call->before_send();
    if (!allowed) co_return Attempt{std::unexpected(allowed.error())};
  }
  HttpRequest request = call->request;
  request.timeout = attempt_timeout(options_.request_timeout, begun, call->deadline);
  request.before_resend = call->before_send;
  Result<HttpResponse> answer = co_await transport_->send(std::move(request));
  record(*call, answer ? answer->status : 0, answer ? answer->header("date") : "", begun, retry);
  // A transport may hold more than was asked for.
  const std::size_t most = call->request.max_body_bytes;
  if (most > 0 && answer && answer->body.size() > most)
    answer = fail(Reason::too_large, fmt::format("the answer is larger than {} bytes", most));
  if (!answer) {
    answer = std::unexpected(prefixed(call->what, answer.error()));
  } else if (answer->status >= 300) {
    answer =
        std::unexpected(error_from_answer(answer->status, answer->body, answer->header("retry-after"), call->what));
  }
  if (place != nullptr && answer) place->served();
  if (place == nullptr || answer) co_return Attempt{std::move(answer)};
  const Error& error = answer.error();
  if (is_overload(error))
    place->refused(error.retry_after);
  else if (error.reason != Reason::cancelled && error.reason != Reason::transport)
    place->served();
  co_return Attempt{std::move(answer)};
}

asio::awaitable<Result<HttpResponse>> ApiClient::execute(Call planned) {
  if (options_.call_timeout != Duration::max())
    planned.deadline = std::min(planned.deadline, clock_->monotonic() + options_.call_timeout);
  const auto call = std::make_shared<const Call>(std::move(planned));
  Duration waited{0};
  std::string last_failure;
  for (int attempts = 0;; ++attempts) {
    if (clock_->monotonic() >= call->deadline) {
      Error late{Reason::timeout, 0,
                 fmt::format("{}: the deadline passed before it was sent{}", call->what,
                             last_failure.empty() ? "" : "; before that: " + last_failure)};
      late.never_sent = attempts == 0;
      co_return std::unexpected(std::move(late));
    }
    Attempt made = co_await attempt(call, attempts > 0);
    if (made.answer) co_return std::move(made.answer);
    Error error = std::move(made.answer.error());
    error.never_sent = error.never_sent && attempts == 0;
    // What the server answered before says more than that the lane was closed.
    if (!made.sent && !last_failure.empty()) error.message += "; before that: " + last_failure;
    if (!may_retry(*call, error) || attempts >= call->max_retries) co_return std::unexpected(std::move(error));
    const Duration asked = error.retry_after.value_or(std::chrono::milliseconds(0));
    const Backoff backoff{options_.first_backoff, options_.last_backoff};
    const Duration delay = std::max<Duration>(jitter_(backoff.after(attempts), 1.0, 1.5), asked);
    const bool too_late = call->deadline != MonoTime::never() && clock_->monotonic() + delay >= call->deadline;
    if (too_late || waited + delay > options_.max_retry_wait) co_return std::unexpected(std::move(error));
    waited += delay;
    last_failure = std::move(error.message);
    Result<void> slept = co_await wait_before_retry(delay);
    if (!slept) co_return std::unexpected(slept.error());
  }
}

asio::awaitable<Result<std::string>> ApiClient::read(std::string_view verb, std::string resource, HttpRequest request,
                                                     std::string what, CallOptions options) {
  Call call;
  call.request = std::move(request);
  call.request.channel = options.channel;
  call.verb = verb;
  call.resource = std::move(resource);
  call.what = std::move(what);
  call.deadline = options.deadline;
  call.max_retries = options_.max_retries;
  return body_of(std::move(call));
}

asio::awaitable<Result<std::string>> ApiClient::body_of(Call call) {
  Result<HttpResponse> answer = co_await execute(std::move(call));
  if (!answer) co_return std::unexpected(answer.error());
  co_return std::move(answer->body);
}

asio::awaitable<Result<std::string>> ApiClient::get(Gvr gvr, ObjectKey key, CallOptions options) {
  HttpRequest request;
  request.path = object_path(gvr, key);
  return read("GET", gvr.resource, std::move(request), what_of("get", gvr, key), options);
}

asio::awaitable<Result<std::string>> ApiClient::get_path(std::string path, CallOptions options) {
  HttpRequest request;
  request.path = path;
  return read("GET", path.substr(0, path.find('?')), std::move(request), "get " + path, options);
}

asio::awaitable<Result<std::string>> ApiClient::read_page(Gvr gvr, ListOptions options, std::string continue_token,
                                                          int limit, std::size_t most, std::string accept) {
  // The token carries the resourceVersion; naming one beside it is refused.
  const bool first = continue_token.empty();
  const std::string query = query_text({{"labelSelector", options.label_selector.to_string()},
                                        {"fieldSelector", options.field_selector.to_string()},
                                        {"limit", std::to_string(limit)},
                                        {"resourceVersion", first ? options.resource_version : ""},
                                        {"continue", continue_token}});
  HttpRequest request;
  request.path = collection_path(gvr, options.ns) + query;
  request.max_body_bytes = most;
  if (!accept.empty()) request.accept = std::move(accept);
  return read("LIST", gvr.resource, std::move(request), what_of("list", gvr, options.ns), options.call);
}

void ApiClient::learn_page(const std::string& collection, int limit, int asked, std::size_t bytes) {
  constexpr std::size_t kMostCollections = 256;  // There are as many as watches and lists by namespace.
  if (bytes > options_.max_page_bytes) {
    if (page_limits_.size() >= kMostCollections) page_limits_.clear();
    page_limits_[collection] = std::max(1, limit / 4);
  } else if (bytes < options_.max_page_bytes / 4 && limit < asked) {
    page_limits_[collection] = std::min(asked, limit * 2);
  } else if (limit >= asked) {
    page_limits_.erase(collection);
  }
}

asio::awaitable<Result<ListPage>> ApiClient::list_page(Gvr gvr, ListOptions options, std::string continue_token,
                                                       ItemSink* sink) {
  const int asked = options.page_limit > 0 ? options.page_limit : options_.page_limit;
  const std::string collection = collection_path(gvr, options.ns);
  while (true) {
    const auto learnt = page_limits_.find(collection);
    const int limit = learnt == page_limits_.end() ? asked : std::min(asked, learnt->second);
    const std::size_t most = limit > 1 ? options_.max_page_bytes : options_.max_object_bytes;
    Result<std::string> body = co_await read_page(gvr, options, continue_token, limit, most, "");
    if (!body && body.error().reason == Reason::too_large) {
      // Servers before 1.31 answer this version from their watch cache, and then ignore the limit.
      const bool unlimited = options.resource_version == "0" && continue_token.empty();
      if (unlimited) options.resource_version.clear();
      learn_page(collection, limit, asked, options_.max_page_bytes + 1);
      if (limit > 1 || unlimited) continue;
      Result<ListPage> rest = co_await skip_object(gvr, options, continue_token, sink, body.error());
      co_return rest;
    }
    if (!body) co_return std::unexpected(body.error());
    learn_page(collection, limit, asked, std::min(body->size(), options_.max_page_bytes));
    Result<ListPage> page = decode_list_page(*std::move(body), sink);
    if (page) co_return page;
    if (page.error().reason == Reason::too_large) co_return page;
    co_return std::unexpected(prefixed(what_of("list", gvr, options.ns), page.error()));
  }
}

asio::awaitable<Result<ListPage>> ApiClient::skip_object(Gvr gvr, ListOptions options, std::string continue_token,
                                                         ItemSink* sink, Error why) {
  ItemFunction items([&](std::optional<std::string_view> metadata) {
    const Result<ObjectKey> key = read_object_key(*metadata);
    const std::string name = key ? to_string(*key) : "without a name";
    return sink->skipped(*metadata, prefixed(fmt::format("{} {} is skipped", gvr.resource, name), why));
  });
  Result<std::string> body = co_await read_page(gvr, options, continue_token, 1, options_.max_page_bytes,
                                                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  if (!body) co_return std::unexpected(body.error());
  Result<ListPage> page = decode_list_page(*std::move(body), &items);
  co_return page;
}

asio::awaitable<Result<std::string>> ApiClient::list(Gvr gvr, ListOptions options, ItemSink* sink) {
  std::string token;
  bool restarted = false;
  while (true) {
    Result<ListPage> page = co_await list_page(gvr, options, token, sink);
    if (!page) {
      if (page.error().reason != Reason::expired || token.empty() || restarted) co_return std::unexpected(page.error());
      restarted = true;
      token.clear();
      sink->restart();
      continue;
    }
    if (page->continue_token.empty()) co_return std::move(page->resource_version);
    token = std::move(page->continue_token);
  }
}

asio::awaitable<Result<std::unique_ptr<ByteStream>>> ApiClient::open_watch(Gvr gvr, WatchOptions options) {
  Call call;
  call.verb = "WATCH";
  call.resource = gvr.resource;
  call.what = what_of("watch", gvr, options.ns);
  call.request.path = watch_path(gvr, options);
  if (options.protobuf) call.request.accept = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
  call.request.timeout = options_.request_timeout;
  const MonoTime begun = clock_->monotonic();
  Result<std::unique_ptr<ByteStream>> stream = co_await transport_->open(call.request);
  record(call, stream ? (*stream)->status() : 0, stream ? (*stream)->header("date") : "", begun, false);
  if (!stream) co_return std::unexpected(prefixed(call.what, stream.error()));
  if ((*stream)->status() < 300) co_return stream;

  constexpr std::size_t kMostOfAnError = 64U * 1024;
  std::string body;
  while (body.size() < kMostOfAnError) {
    Result<std::string> chunk = co_await (*stream)->read(options_.request_timeout);
    if (!chunk || chunk->empty()) break;
    body += *chunk;
  }
  co_return std::unexpected(error_from_answer((*stream)->status(), body, (*stream)->header("retry-after"), call.what));
}

}  // namespace k8s
