#include "controller/runtime/client_settings.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "controller/serving/metrics.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

// The HTTP method of a client verb, as client-go's rest_client_requests_total has it.
std::string method_of(std::string_view verb) {
  if (verb == "LIST" || verb == "WATCH" || verb == "GET") return "GET";
  if (verb == "APPLY") return "PATCH";
  return std::string(verb);
}

}  // namespace

k8s::ClientOptions client_options(const Runtime& runtime, const Options& options, OutageLog* outages,
                                  k8s::ServerClock* clock) {
  k8s::ClientOptions out;
  out.field_manager = std::string(kFieldManager);
  out.page_limit = static_cast<int>(options.page_size);
  out.max_page_bytes = std::min(out.max_page_bytes, largest_answer());
  out.max_object_bytes = std::min(out.max_object_bytes, largest_answer());
  out.most_writes = static_cast<int>(options.max_in_flight);
  out.seed = runtime.seed;
  out.on_request = [metrics = runtime.metrics, host = runtime.host, outages, clock](const k8s::RequestRecord& record) {
    const std::string code = record.status == 0 ? "<error>" : std::to_string(record.status);
    metrics->add("rest_client_requests_total", {{"code", code}, {"method", method_of(record.verb)}, {"host", host}});
    metrics->observe("rest_client_request_duration_seconds", {{"verb", std::string(record.verb)}, {"host", host}},
                     in_seconds(record.took));
    if (record.retry) {
      metrics->add("rest_client_request_retries_total",
                   {{"code", code}, {"verb", std::string(record.verb)}, {"host", host}});
    }
    outages->answered(record.status);
    if (record.status < 500) clock->answered(record.date);  // Others may be a proxy's.
    if (record.status == 429) metrics->add("gpusharing_throttled_total");
  };
  return out;
}

k8s::WatcherOptions watcher_options(const Runtime& runtime, const Options& options) {
  k8s::WatcherOptions out;
  out.watch_list = options.watch_list;
  out.max_line = std::min(out.max_line, largest_answer());
  out.seed = runtime.seed;
  return out;
}

}  // namespace gso
