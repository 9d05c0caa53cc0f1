#include "k8sclient/value/error.h"

#include <algorithm>
#include <array>

namespace k8s {

bool has_cause(const Error& error, std::string_view reason) {
  return std::ranges::any_of(error.causes, [&](const Cause& cause) { return cause.reason == reason; });
}

bool refused_by_budget(const Error& error) {
  if (error.reason == Reason::too_many_requests) return has_cause(error, kBudgetCause);
  return error.http_status == 500 && error.message.find("more than one PodDisruptionBudget") != std::string::npos;
}

bool outcome_unknown(const Error& error) {
  if (error.never_sent || refused_by_budget(error)) return false;
  return error.reason == Reason::timeout || error.reason == Reason::transport || error.reason == Reason::decode ||
         error.reason == Reason::unavailable || error.reason == Reason::too_large;
}

bool retryable(Reason reason) {
  using enum Reason;
  constexpr std::array kFinal{not_found, already_exists, invalid, forbidden, too_large, cancelled};
  return std::ranges::find(kFinal, reason) == kFinal.end();
}

Error prefixed(std::string_view who, Error error) {
  error.message.insert(0, ": ").insert(0, who);
  return error;
}

std::string_view to_string(Reason reason) {
  // In the order of Reason.
  constexpr std::array<std::string_view, 14> kNames{
      "not_found",         "already_exists", "conflict",    "expired",   "invalid", "forbidden", "unauthorized",
      "too_many_requests", "timeout",        "unavailable", "transport", "decode",  "too_large", "cancelled"};
  return kNames.at(static_cast<std::size_t>(reason));
}

}  // namespace k8s
