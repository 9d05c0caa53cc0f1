// The connection of a command, and what is said while it waits.
#include "controller/commands/shared/session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>

#include "controller/commands/shared/print.h"
#include "controller/config/version.h"
#include "controller/runtime/task_group.h"
#include "controller/serving/process_metrics.h"
#include "k8sclient/transport/curl_transport.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/labels.h"

namespace gso {

namespace asio = boost::asio;

namespace {

// Why no server works at that address; empty: one does, whatever else it answers. One small request: further ones would
// be delayed, because a server that does not answer counts as overloaded (request_lane.h).
asio::awaitable<std::string> find_unreachable(Session session) {
  const k8s::Result<std::string> answer = co_await session.client->get_path("/version");
  if (answer) co_return std::string();
  const k8s::Error& error = answer.error();
  if (error.http_status >= 500)
    co_return fmt::format("the API server {} fails. Try again when it works: {}", session.server, error.message);
  if (error.reason != k8s::Reason::transport && error.reason != k8s::Reason::timeout) co_return std::string();
  co_return fmt::format("the API server {} cannot be reached: {}", session.server, error.message);
}

// A person can take longer to log in than a request may wait, so that comes first. `credentials` can be null.
asio::awaitable<int> log_in_and_run(std::shared_ptr<k8s::CredentialSource> credentials, Session session,
                                    std::string_view command, const SessionBody* body, std::ostream* err) {
  if (credentials != nullptr) {
    const k8s::Result<std::string> token = co_await credentials->token(k8s::MonoTime::never());
    if (!token) co_return refuse(*err, command, token.error().message);
  }
  TaskGroup tasks(session.clock);
  std::string unreachable;
  if (session.notice != nullptr) {  // A person waits.
    tasks.spawn(session.io->get_executor(), session.notice->announce());
    unreachable = co_await find_unreachable(session);
  }
  int exit_status = 0;
  if (unreachable.empty())
    exit_status = co_await (*body)(std::move(session));
  else
    exit_status = refuse(*err, command, unreachable);
  tasks.cancel();
  co_await tasks.join();
  co_return exit_status;
}

}  // namespace

k8s::Result<void> check_verification(const k8s::Connection& connection, const Options& options) {
  if (!connection.insecure_skip_tls_verify || options.insecure_skip_tls_verify) return {};
  return k8s::fail(
      k8s::Reason::invalid,
      fmt::format("the kubeconfig says insecure-skip-tls-verify for {}, so that whoever answers there gets "
                  "the token. Set certificate-authority-data there instead, or give "
                  "--insecure-skip-tls-verify as well",
                  connection.server));
}

std::string login_hint(const std::string& server, const std::string& identity) {
  if (identity.empty())
    return fmt::format("{} requires credentials and none are given. Log in and check `kubectl auth whoami`", server);
  return fmt::format(
      "{} rejected the credentials of {}: they are wrong, or a token or certificate has expired. Log in again and "
      "check `kubectl auth whoami`",
      server, identity);
}

k8s::ClientOptions interactive_client_options(const Options& options) {
  k8s::ClientOptions out{.max_retries = 2, .last_backoff = std::chrono::seconds(1)};
  out.longest_pause = std::chrono::milliseconds(200);  // A dozen requests: a person waits for each.
  // As kubectl. Without a resourceVersion such pages come from the watch cache since Kubernetes 1.31 (KEP-2340); with
  // resourceVersion=0 the limit would be ignored, and the answer would be one page of the whole cluster.
  out.page_limit = 500;
  out.request_timeout = std::chrono::ceil<std::chrono::milliseconds>(options.request_timeout);
  out.call_timeout = options.request_timeout;
  // Fields that a person sets by a command have a field manager other than the operator's.
  out.field_manager = std::string(kFieldManager) + "-cli";
  return out;
}

int run_connected(std::string_view command, const Options& options, k8s::Interaction interaction, std::ostream& err,
                  const SessionBody& body, NoServer no_server) {
  asio::io_context io(1);
  const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const k8s::ConnectionRequest request{options.kubeconfig, options.context, interaction};
  k8s::Result<k8s::Connection> connection = k8s::load_connection(request, k8s::process_environment(), clock.get());
  if (!connection) return refuse(err, command, connection.error().message);
  if (no_server == NoServer::is_awaited) {
    const k8s::Result<void> allowed = check_verification(*connection, options);
    if (!allowed) return refuse(err, command, allowed.error().message);
  }
  connection->user_agent = "gpu-sharing-operator/" + version();
  const std::string server = connection->server;
  const std::string identity = connection->identity;
  Session session{.io = &io,
                  .clock = clock.get(),
                  .server = server,
                  .namespace_name = connection->namespace_name,
                  .verified = !connection->insecure_skip_tls_verify};
  const std::shared_ptr<k8s::CredentialSource> first = interaction.possible() ? connection->credentials : nullptr;
  k8s::CurlTransportOptions limits;
  limits.max_body_bytes = largest_answer();
  limits.max_unread_stream_bytes = std::min(limits.max_unread_stream_bytes, largest_answer());
  const std::unique_ptr<k8s::Transport> transport =
      k8s::make_curl_transport(io.get_executor(), *std::move(connection), clock.get(), limits);
  WaitNotice notice({.behind = transport.get(),
                     .clock = clock.get(),
                     .command = std::string(command),
                     .server = server,
                     .request_timeout = options.request_timeout,
                     .err = &err});
  // The operator says in its log what it waits for.
  if (no_server == NoServer::ends_command) session.notice = &notice;
  session.transport = &notice;
  k8s::ApiClient client(session.transport, clock.get(), interactive_client_options(options));
  session.client = &client;
  int exit_status = 0;
  asio::co_spawn(io, log_in_and_run(first, std::move(session), command, &body, &err),
                 [&](const std::exception_ptr& error, int status) {
                   if (error != nullptr) std::rethrow_exception(error);
                   exit_status = status;
                   io.stop();
                 });
  io.run();
  if (notice.was_refused() && exit_status != 0) err << command << ": " << login_hint(server, identity) << "\n";
  return exit_status;
}

// A request from here to its answer, or to its cancellation.
class WaitNotice::Pending {
 public:
  Pending(WaitNotice* notice, const k8s::HttpRequest& request)
      : notice_(notice),
        number_(++notice->requests_),
        what_(fmt::format("{} {}", k8s::to_string(request.method), request.path.substr(0, request.path.find('?')))) {
    notice_->open_.emplace(number_, Open{what_, notice_->parts_.clock->monotonic()});
  }
  ~Pending() { notice_->open_.erase(number_); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  void answered(int status) const {
    if (status == 401) notice_->refused_ = true;
    if (status != 429 && status < 500) return notice_->failing_since_.reset();
    notice_->note_failure(fmt::format("it answers {} with HTTP {}", what_, status));
  }
  void failed(const k8s::Error& error) const {
    if (error.reason == k8s::Reason::cancelled) return;
    notice_->note_failure(fmt::format("{} failed: {}", what_, error.message));
  }

 private:
  WaitNotice* notice_;
  std::uint64_t number_;
  std::string what_;
};

void WaitNotice::note_failure(std::string failure) {
  if (!failing_since_) failing_since_ = parts_.clock->monotonic();
  failure_ = std::move(failure);
}

asio::awaitable<k8s::Result<k8s::HttpResponse>> WaitNotice::send(k8s::HttpRequest request) {
  const Pending pending(this, request);
  k8s::Result<k8s::HttpResponse> answer = co_await parts_.behind->send(std::move(request));
  answer ? pending.answered(answer->status) : pending.failed(answer.error());
  co_return answer;
}

asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> WaitNotice::open(k8s::HttpRequest request) {
  const Pending pending(this, request);
  k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await parts_.behind->open(std::move(request));
  stream ? pending.answered((*stream)->status()) : pending.failed(stream.error());
  co_return stream;
}

// Why the command has waited for so long; nullopt: it has not.
std::optional<std::string> WaitNotice::reason() const {
  const k8s::MonoTime due = parts_.clock->monotonic() - kPatience;
  if (failing_since_ && *failing_since_ <= due) return failure_;
  if (open_.empty() || open_.begin()->second.since > due) return std::nullopt;
  return fmt::format("no answer to {} yet", open_.begin()->second.what);
}

asio::awaitable<void> WaitNotice::announce() {
  constexpr k8s::Duration kLook = std::chrono::seconds(1);
  while (!ended_) {
    const std::optional<std::string> why = reason();
    if (why) {
      print_line(*parts_.err, "{}: waiting for the API server {}: {}{} A request ends after {} (--request-timeout)",
                 parts_.command, parts_.server, *why, why->ends_with('?') ? "" : ".",
                 k8s::format_go_duration(parts_.request_timeout));
      *parts_.err << std::flush;
      co_return;
    }
    co_await parts_.clock->sleep_for(kLook);
  }
}

int run_on_cluster(std::string_view command, const Options& options, std::ostream& err, const ClusterTask& task) {
  return run_connected(fmt::format("gpu-sharing-operator {}", command), options, k8s::terminal_of_process(), err,
                       [&task](const Session& session) { return task(session.client, session.clock); });
}

}  // namespace gso
