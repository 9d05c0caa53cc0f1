// See server_outage.h.
#include "controller/reading/server_outage.h"

#include <fmt/format.h>

#include <algorithm>

#include "k8sclient/value/time.h"

namespace gso {

bool is_no_answer(const k8s::Error& error) {
  const bool silent =
      error.http_status == 0 && (error.reason == k8s::Reason::transport || error.reason == k8s::Reason::timeout);
  return silent || (error.http_status >= 502 && error.http_status <= 504);
}

std::string without_query(std::string message) {
  const std::size_t path = message.find(" /");
  const std::size_t end = path == std::string::npos ? path : std::min(message.find(' ', path + 1), message.size());
  const std::size_t query = message.find('?', path == std::string::npos ? message.size() : path);
  if (query < end && end != std::string::npos) message.erase(query, end - query);
  return message;
}

// The transport's errors are "watch nodes: GET /api/v1/nodes?watch=true on HOST: CAUSE".
void ServerOutage::failed(const k8s::Error& error, k8s::WallTime now) {
  if (is_on()) return;
  constexpr std::string_view kOn = " on ";
  const std::string message = without_query(error.message);
  const std::size_t on = message.find(kOn);
  const std::size_t colon = on == std::string::npos ? on : message.find(": ", on);
  const bool named = colon != std::string::npos;
  const std::string host = named ? " at " + message.substr(on + kOn.size(), colon - on - kOn.size()) : std::string();
  line_ = fmt::format("the API server{} cannot be reached since {}, and this view is older: {}", host,
                      k8s::format_time(now), named ? message.substr(colon + 2) : message);
}

}  // namespace gso
