// A simulated API server on simulated time with short request verbs, for the tests of this folder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/sim_clock.h"

namespace gso::sim {

struct Answer {
  int status = 0;
  nlohmann::json body;  // Discarded when the answer was no JSON.
  std::string text;

  [[nodiscard]] std::string reason() const { return body.is_object() ? body.value("reason", "") : ""; }
  [[nodiscard]] std::string revision() const { return body["metadata"].value("resourceVersion", ""); }
};

struct Api {
  boost::asio::io_context io;
  SimClock clock{io, *k8s::parse_rfc3339("2026-01-01T00:00:00Z")};
  ApiServer server{io.get_executor(), clock};
  RequestContext context{"alice", "test/v1", 0};

  Answer send(k8s::Method method, std::string_view path, const nlohmann::json& body = nullptr,
              std::string_view content_type = "application/json") {
    return send_text(method, path, body.is_null() ? "" : body.dump(), content_type);
  }
  Answer send_text(k8s::Method method, std::string_view path, std::string body,
                   std::string_view content_type = "application/json") {
    const k8s::HttpRequest request = local_request(method, path, std::move(body), content_type);
    const k8s::HttpResponse response = server.handle(request, context);
    return {response.status, nlohmann::json::parse(response.body, nullptr, false), response.body};
  }
  Answer get(std::string_view path) { return send(k8s::Method::get, path); }
  Answer post(std::string_view path, const nlohmann::json& body) { return send(k8s::Method::post, path, body); }
  Answer merge(std::string_view path, const nlohmann::json& body) {
    return send(k8s::Method::patch, path, body, "application/merge-patch+json");
  }
  Answer remove(std::string_view path, const nlohmann::json& body = nullptr) {
    return send(k8s::Method::del, path, body);
  }
  std::shared_ptr<WatchStream> watch(std::string_view path) {
    auto answer = server.watch(local_request(k8s::Method::get, path), context);
    auto* stream = std::get_if<std::shared_ptr<WatchStream>>(&answer);
    return stream == nullptr ? nullptr : *stream;
  }
};

// The events that a stream holds now: "ADDED name", "BOOKMARK", "ERROR 410".
inline std::vector<std::string> events_of(WatchStream& stream) {
  std::vector<std::string> events;
  std::istringstream lines(stream.take());
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    const std::string type = event["type"];
    if (type == "ERROR")
      events.push_back("ERROR " + std::to_string(event["object"].value("code", 0)));
    else if (type == "BOOKMARK")
      events.push_back(type + (event["object"]["metadata"].contains("annotations") ? " end" : ""));
    else
      events.push_back(type + " " + event["object"]["metadata"].value("name", ""));
  }
  return events;
}

}  // namespace gso::sim
