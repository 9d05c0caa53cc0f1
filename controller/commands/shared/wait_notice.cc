// See wait_notice.h.
#include "controller/commands/shared/wait_notice.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "controller/commands/shared/print_line.h"
#include "k8sclient/value/time.h"

namespace gso {

namespace asio = boost::asio;

namespace {

constexpr int kTooManyRequests = 429;
constexpr int kInternalError = 500;

}  // namespace

WaitNotice::Pending::Pending(WaitNotice* notice, const k8s::HttpRequest& request)
    : notice_(notice),
      number_(++notice->requests_),
      what_(fmt::format("{} {}", k8s::to_string(request.method), request.path.substr(0, request.path.find('?')))) {
  notice_->open_.emplace(number_, Open{what_, notice_->parts_.clock->monotonic()});
}

void WaitNotice::Pending::answered(int status) const {
  if (status == kTooManyRequests || status >= kInternalError) {
    notice_->note_failure(fmt::format("it answers {} with HTTP {}", what_, status));
  } else {
    notice_->failing_since_.reset();
  }
}

void WaitNotice::Pending::failed(const k8s::Error& error) const {
  if (error.reason != k8s::Reason::cancelled) notice_->note_failure(fmt::format("{} failed: {}", what_, error.message));
}

void WaitNotice::note_failure(std::string failure) {
  if (!failing_since_) failing_since_ = parts_.clock->monotonic();
  failure_ = std::move(failure);
}

asio::awaitable<k8s::Result<k8s::HttpResponse>> WaitNotice::send(k8s::HttpRequest request) {
  const Pending pending(this, request);
  k8s::Result<k8s::HttpResponse> answer = co_await parts_.behind->send(std::move(request));
  if (answer) {
    pending.answered(answer->status);
  } else {
    pending.failed(answer.error());
  }
  co_return answer;
}

asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> WaitNotice::open(k8s::HttpRequest request) {
  const Pending pending(this, request);
  k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await parts_.behind->open(std::move(request));
  if (stream) {
    pending.answered((*stream)->status());
  } else {
    pending.failed(stream.error());
  }
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

}  // namespace gso
