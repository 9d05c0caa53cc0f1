// The one error type of the project, and Result<T>: errors are values, named by what the caller should do.
//
//   Result<Node> r = parse(text);
//   if (!r) return std::unexpected(r.error());
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace k8s {

// metav1.StatusReason in snake case, plus what happens below HTTP (`transport`) and inside a body (`decode`).
enum class Reason {
  not_found,          // The object or the API is absent. On a delete: done.
  already_exists,     // Create lost a race. Read it, then decide again.
  conflict,           // resourceVersion or uid precondition failed. Requeue the key; plan again from a fresh view.
  expired,            // 410 Gone: the resourceVersion or continue token is too old. Relist.
  invalid,            // 400, 422 and the like: the same request will fail again. Terminal; report it to the user.
  forbidden,          // 403: RBAC or admission. Terminal until somebody changes it; report which verb and kind.
  unauthorized,       // 401: credentials were re-read once and are still refused.
  too_many_requests,  // 429. Wait `retry_after`.
  timeout,            // The deadline passed, or 504. The write might have happened, except with `never_sent`.
  unavailable,        // 5xx. Back off and retry.
  transport,          // No HTTP answer: DNS, connect, TLS, reset. Back off and retry.
  decode,             // The body is not what the API promises (truncated JSON).
  too_large,          // The answer, or one object in it, has more bytes than memory is meant for. The same again fails.
  cancelled,          // We are shutting down.
};

// One of metav1.Status.details.causes: what exactly was refused, for programs.
struct Cause {
  std::string reason;   // metav1.CauseType: "DisruptionBudget", "FieldManagerConflict", "FieldValueInvalid", …
  std::string field;    // Path of the field, if it is about one.
  std::string message;  // For people; its words change between releases.
  friend bool operator==(const Cause&, const Cause&) = default;
};

struct Error {
  Reason reason = Reason::transport;
  int http_status = 0;       // 0 when there was no HTTP answer.
  std::string message = {};  // Names the object, what is wrong, and what would be right.
  std::optional<std::chrono::milliseconds> retry_after = std::nullopt;  // From Retry-After, if the server sent one.
  std::vector<Cause> causes = {};  // At most kMostCauses; the message has their texts.
  // Nothing of the call has left this process, so the server has not done it.
  bool never_sent = false;

  friend bool operator==(const Error&, const Error&) = default;
};

inline constexpr std::size_t kMostCauses = 32;

// One of the causes has this reason. Decide by that and not by the words of a message.
[[nodiscard]] bool has_cause(const Error& error, std::string_view reason);

// The reason of the cause with which a PodDisruptionBudget refuses an eviction; its message names the budget.
inline constexpr std::string_view kBudgetCause = "DisruptionBudget";

// PodDisruptionBudgets refuse an eviction: a definite answer about the pod, which says nothing about the server. A
// budget with nothing to spare answers 429 with a cause, which an overloaded server does not give. Several budgets of
// one pod answer 500, and nothing but the message says so (pkg/registry/core/pod/storage/eviction.go).
[[nodiscard]] bool refused_by_budget(const Error& error);

// The server might have done what was asked, or might still do it: the answer was lost, or says only that the server
// has failed.
[[nodiscard]] bool outcome_unknown(const Error& error);

// True when the same request may succeed later without anybody changing anything.
[[nodiscard]] bool retryable(Reason reason);
[[nodiscard]] inline bool retryable(const Error& error) {
  return retryable(error.reason);
}

// The reason's name as written in this header, for logs and metrics.
[[nodiscard]] std::string_view to_string(Reason reason);

// std::expected with [[nodiscard]]. g++ 12 does not warn about a discarded `co_await f();`: never write one.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

inline std::unexpected<Error> fail(Reason reason, std::string message) {
  return std::unexpected(Error{reason, 0, std::move(message)});
}

// The error, with who met it before its message: "patch nodes n1: …".
[[nodiscard]] Error prefixed(std::string_view who, Error error);

// --- How a coroutine without anybody who awaits it reports a failure: `asio::co_spawn(executor, task(),
// k8s::kRethrow)`. asio::detached would drop the exception, and with it the work (a timer that nobody sets again, a
// pipe that nobody reads). With this one it leaves through io_context::run(), which ends the process with its message.
// Nothing of this project throws for an error that can be expected, so what arrives here is a bug or a machine without
// memory.
//
// And how a destructor does work that can throw when memory is short: `never_throw([&] { … })`. Out of a destructor an
// exception would end the process at once, with the Lease held; what was to be released stays until its deadline.

struct Rethrow {
  void operator()(const std::exception_ptr& error) const {
    if (error != nullptr) std::rethrow_exception(error);
  }
};
inline constexpr Rethrow kRethrow;

template <class Work>
void never_throw(const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& short_of_memory) {
    static_cast<void>(short_of_memory);
  }
}

// The same at the end of a scope, also where an exception or the end of a coroutine leaves it.
template <class Work>
class AtEnd {
 public:
  explicit AtEnd(Work work) : work_(std::move(work)) {}
  ~AtEnd() { never_throw(work_); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  Work work_;
};

}  // namespace k8s
