// An ApiClient over a scripted transport in simulated time, and what its metrics hook heard.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test {

inline const Gvr kNodes{"", "v1", "nodes"};
inline const Gvr kSets{"apps", "v1", "daemonsets"};

struct ClientTest : ClientFixture {
  struct Recorded {
    std::string verb;
    std::string resource;
    bool retry = false;
  };
  std::vector<Recorded> records;
  ApiClient client{&transport, &clock, options()};

  ClientOptions options() {
    ClientOptions out;
    out.field_manager = "tester";
    out.on_request = [this](const RequestRecord& record) {
      records.push_back({std::string(record.verb), std::string(record.resource), record.retry});
    };
    return out;
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& request : transport.requests) out.push_back(request.path);
    return out;
  }
};

}  // namespace k8s::test
