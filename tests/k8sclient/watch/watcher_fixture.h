// A Watcher of nodes into a store, over a scripted transport in simulated time.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/paths.h"
#include "k8sclient/watch/store_sink.h"
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

struct WatcherTest : ClientFixture {
  Store<Thing> store;
  std::vector<std::string> errors;
  StoreSink<Thing> sink{&store, project, [this](const Error& e) { errors.push_back(e.message); }};
  ApiClient client{&transport, &clock, ClientOptions{}};
  WatcherOptions options;
  std::unique_ptr<Watcher> watcher;
  bool ended = false;

  void start() {
    watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, &sink);
    boost::asio::co_spawn(io, watcher->run(), [this](std::exception_ptr thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    clock.run_ready();
  }
  void TearDown() override {
    if (watcher == nullptr) return;
    watcher->stop();
    clock.run_ready();
    EXPECT_TRUE(ended) << "run() must end promptly after stop()";
    EXPECT_EQ(transport.open_streams, 0);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [key, object] : store.all()) out.push_back(key.name);
    return out;
  }
  // One query parameter of the n-th request; empty when it has none.
  std::string asked(std::size_t request, std::string_view parameter) const {
    const std::string& path = transport.requests.at(request).path;
    const auto query = parse_query(std::string_view(path).substr(path.find('?') + 1));
    const auto it = query->find(parameter);
    return it == query->end() ? std::string() : it->second;
  }
  double gap(std::size_t request) const {
    return std::chrono::duration<double>(transport.times.at(request) - transport.times.at(request - 1)).count();
  }
};

}  // namespace k8s::test
