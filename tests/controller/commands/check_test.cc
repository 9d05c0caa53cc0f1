// `check`: when a Lease shows a leader.
#include "controller/commands/check.h"

#include <gtest/gtest.h>

#include <string>

namespace gso {
namespace {

struct LeaseCase {
  const char* name;
  const char* lease;
  bool held;
  const char* why;
};

class Leases : public testing::TestWithParam<LeaseCase> {};

TEST_P(Leases, AreHeldOnlyByWhoRenewsThem) {
  const k8s::WallTime now = *k8s::parse_rfc3339("2026-01-01T00:01:00Z");
  std::string why;
  EXPECT_EQ(lease_is_held(GetParam().lease, now, &why), GetParam().held);
  EXPECT_NE(why.find(GetParam().why), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(
    Check, Leases,
    testing::Values(
        LeaseCase{"Renewed",
                  R"({"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:50Z"}})",
                  true, ""},
        LeaseCase{"Expired",
                  R"({"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:40Z"}})",
                  false, "a has not renewed the Lease since 2026-01-01T00:00:40Z"},
        LeaseCase{"Released", R"({"spec":{"holderIdentity":"","leaseDurationSeconds":1}})", false, "no holder"},
        LeaseCase{"NeverRenewed", R"({"spec":{"holderIdentity":"a"}})", false, "since ever"},
        LeaseCase{"WithoutSpec", R"({"metadata":{}})", false, "no spec"}, LeaseCase{"NoObject", "[]", false, "no spec"},
        LeaseCase{"NoJson", "<html>", false, "no spec"}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace gso
