// A Watcher of nodes into a store, over a scripted transport in simulated time.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/watch/watcher.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test {

struct Thing {
  ObjectMeta meta;
  friend bool operator==(const Thing&, const Thing&) = default;
};

// An object with a "bad" field cannot be projected.
inline Result<Thing> project(std::string_view text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object() || object.contains("bad")) return fail(Reason::decode, "spec.x: expected a number");
  Thing out;
  out.meta.name = object["metadata"]["name"];
  out.meta.resource_version = object["metadata"]["resourceVersion"];
  return out;
}

inline Answer listed(int version, const std::vector<std::string>& names, const std::string& continue_token = {}) {
  return Answer::ok(page(version, names, continue_token));
}
inline Answer watched(std::vector<StreamAct> acts = {}) {
  return Answer::streaming(std::move(acts));
}

// What a list at `version` shows of one object.
inline std::string one_object(int version, std::string_view name, int object_version) {
  return fmt::format(
      R"({{"kind":"NodeList","metadata":{{"resourceVersion":"{}"}},"items":[{{"metadata":{{"name":"{}","resourceVersion":"{}"}}}}]}})",
      version, name, object_version);
}

// The value of a query parameter, without its escapes.
inline std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '%';
    out += escape ? static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16)) : text[at];
    if (escape) at += 2;
  }
  return out;
}

struct WatcherTest : ClientFixture {
  Store<Thing> store;
  std::vector<std::string> errors;
  StoreSink<Thing> sink{&store, project};
  ApiClient client{&transport, &clock, ClientOptions{}};
  WatcherOptions options;
  std::unique_ptr<Watcher> watcher;
  bool ended = false;

  WatcherTest() {
    options.failed = [this](const Error& e) { errors.push_back(e.message); };
  }
  // The script for a watcher that begins with a list by pages.
  void by_pages(auto... answers) {
    options.watch_list = false;
    transport.then(std::move(answers)...);
  }
  void start(WatchSink* other_sink = nullptr) {
    ended = false;
    watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, other_sink ? other_sink : &sink);
    boost::asio::co_spawn(io, watcher->run(), [this](std::exception_ptr thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    clock.run_ready();
  }
  void stop() {
    watcher->stop();
    clock.run_ready();
    EXPECT_TRUE(ended) << "run() must end promptly after stop()";
    EXPECT_EQ(transport.open_streams, 0);
  }
  void TearDown() override {
    if (watcher != nullptr) stop();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [key, object] : store.all()) out.push_back(key.name);
    return out;
  }
  // One query parameter of the n-th request, decoded; empty when it has none.
  std::string asked(std::size_t request, std::string_view parameter) const {
    std::string_view query = transport.requests.at(request).path;
    query.remove_prefix(std::min(query.size(), query.find('?')));
    while (!query.empty()) {
      query.remove_prefix(1);  // '?' or '&'.
      const std::string_view pair = query.substr(0, query.find('&'));
      query.remove_prefix(pair.size());
      if (pair.substr(0, pair.find('=')) == parameter) return decoded(pair.substr(parameter.size() + 1));
    }
    return {};
  }
  double gap(std::size_t request) const {
    return std::chrono::duration<double>(transport.times.at(request) - transport.times.at(request - 1)).count();
  }
};

}  // namespace k8s::test
