// The Secret with the operator's own certificate: who writes it, who reads it, and what happens when it is missing,
// taken or damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "controller/serving/certificate_secret.h"
#include "k8sclient/api/client.h"
#include "k8sclient/value/base64.h"
#include "tests/controller/scripted_transport.h"
#include "tests/controller/sim_time.h"

namespace gso::certificate_secret_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

// One Secret on an API server.
class CertificateSecretTest : public testing::Test {
 protected:
  ScriptedAnswer answer(const k8s::HttpRequest& request) {
    if (!exists) return ScriptedAnswer::status(404, "NotFound", "secrets \"serving\" not found");
    if (request.method == k8s::Method::get) return ScriptedAnswer::json(200, secret.dump());
    const json patch = json::parse(request.body);
    if (patch["metadata"]["resourceVersion"] != secret["metadata"]["resourceVersion"]) {
      return ScriptedAnswer::status(409, "Conflict", "the object has been modified");
    }
    ++writes;
    secret.merge_patch(patch);
    secret["metadata"]["resourceVersion"] = std::to_string(100 + writes);
    return ScriptedAnswer::json(200, secret.dump());
  }
  std::unique_ptr<CertificateSecret> replica(bool* leads) {
    CertificateSecret::Parts parts;
    parts.reader = &client;
    parts.writer = &client;
    parts.clock = &sim.clock;
    parts.secret = {"ops", "serving"};
    parts.names = {"metrics.ops.svc"};
    parts.may_write = [leads]() -> k8s::Result<void> {
      if (*leads) return {};
      return k8s::fail(k8s::Reason::cancelled, "the lease is not held");
    };
    parts.terms.leaf_life = std::chrono::hours(30);
    parts.terms.leaf_renewal = std::chrono::hours(10);
    parts.events.failed = [this](const k8s::Error& error) { failures.push_back(error.message); };
    parts.events.loaded = [this](k8s::WallTime end) { ends.push_back(end); };
    return std::make_unique<CertificateSecret>(std::move(parts));
  }
  std::string text(const char* key) const {
    return k8s::base64_decode(secret["data"][key].get<std::string>()).value_or("");
  }

  Sim sim;
  ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& request) { return answer(request); }};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  json secret{{"metadata", {{"name", "serving"}, {"resourceVersion", "7"}}}};
  bool exists = true;
  int writes = 0;
  bool yes = true;
  bool no = false;
  std::vector<std::string> failures;
  std::vector<k8s::WallTime> ends;
};

TEST_F(CertificateSecretTest, TheLeaderIssuesItAndTheOthersReadIt) {
  bool second_leads = false;
  const auto first = replica(&yes);
  const auto second = replica(&second_leads);
  sim.start(second->run());
  sim.clock.run_for(10s);
  EXPECT_EQ(second->current(), nullptr);
  EXPECT_EQ(writes, 0);
  sim.start(first->run());
  sim.clock.run_for(3s);
  EXPECT_EQ(writes, 1);
  ASSERT_NE(first->current(), nullptr);
  ASSERT_NE(second->current(), nullptr);
  EXPECT_EQ(first->authorities(), second->authorities());
  EXPECT_EQ(text("ca.crt"), first->authorities());
  EXPECT_THAT(text("tls.crt"), HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_EQ(ends, (std::vector<k8s::WallTime>(2, ends.at(0))));
  EXPECT_TRUE(failures.empty());
}

TEST_F(CertificateSecretTest, ItIsRenewedByTheLeaderAndPickedUpByTheOthers) {
  const auto first = replica(&yes);
  const auto second = replica(&no);
  sim.start(first->run());
  sim.start(second->run());
  sim.clock.run_for(5s);
  const auto before = second->current();
  sim.clock.run_for(19h);
  EXPECT_EQ(writes, 1);
  sim.clock.run_for(3h);
  EXPECT_EQ(writes, 2);
  EXPECT_NE(second->current(), before);
  EXPECT_GT(ends.back(), ends.front() + 19h);
}

TEST_F(CertificateSecretTest, WhoIsSecondTakesWhatTheFirstHasWritten) {
  const auto first = replica(&yes);
  const auto second = replica(&yes);  // A replica that still believes to lead.
  sim.start(first->run());
  sim.start(second->run());
  sim.clock.run_for(10s);
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(first->authorities(), second->authorities());
  EXPECT_TRUE(failures.empty());
}

TEST_F(CertificateSecretTest, AMissingSecretIsNamedAndUsedAsSoonAsItIsThere) {
  exists = false;
  const auto first = replica(&yes);
  sim.start(first->run());
  sim.clock.run_for(5s);
  ASSERT_FALSE(failures.empty());
  EXPECT_THAT(failures.front(), testing::AllOf(HasSubstr("Secret ops/serving does not exist"),
                                               HasSubstr("kubectl create secret generic serving --namespace ops")));
  EXPECT_EQ(first->current(), nullptr);
  exists = true;
  sim.clock.run_for(5s);
  EXPECT_NE(first->current(), nullptr);
}

TEST_F(CertificateSecretTest, DamagedDataServesTheLastGoodOneAndIsWrittenAnew) {
  const auto first = replica(&yes);
  sim.start(first->run());
  sim.clock.run_for(5s);
  const std::string authorities = first->authorities();
  secret["data"]["tls.crt"] = "!!";
  secret["data"]["tls.key"] = json::array();
  sim.clock.run_for(2min);
  EXPECT_NE(first->current(), nullptr);
  EXPECT_EQ(first->authorities(), authorities) << "the authority is not replaced for a damaged certificate";
  EXPECT_THAT(text("tls.crt"), HasSubstr("BEGIN CERTIFICATE"));
}

}  // namespace
}  // namespace gso::certificate_secret_test
