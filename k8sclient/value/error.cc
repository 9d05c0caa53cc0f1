#include "k8sclient/value/error.h"

#include <algorithm>

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
  switch (reason) {
    case Reason::conflict:
    case Reason::expired:
    case Reason::unauthorized:
    case Reason::too_many_requests:
    case Reason::timeout:
    case Reason::unavailable:
    case Reason::transport:
    case Reason::decode:
      return true;
    case Reason::not_found:
    case Reason::already_exists:
    case Reason::invalid:
    case Reason::forbidden:
    case Reason::too_large:
    case Reason::cancelled:
      return false;
  }
  return false;
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::not_found:
      return "not_found";
    case Reason::already_exists:
      return "already_exists";
    case Reason::conflict:
      return "conflict";
    case Reason::expired:
      return "expired";
    case Reason::invalid:
      return "invalid";
    case Reason::forbidden:
      return "forbidden";
    case Reason::unauthorized:
      return "unauthorized";
    case Reason::too_many_requests:
      return "too_many_requests";
    case Reason::timeout:
      return "timeout";
    case Reason::unavailable:
      return "unavailable";
    case Reason::transport:
      return "transport";
    case Reason::decode:
      return "decode";
    case Reason::too_large:
      return "too_large";
    case Reason::cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace k8s
