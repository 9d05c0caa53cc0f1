// Bodies in protobuf, made by hand: what typed clients send for built-in kinds. kubectl_test.sh has kubectl's own.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "apiserver_testing.h"
#include "tests/sim/apiserver/protobuf.h"

namespace gso::sim::apiserver_test_protobuf {
namespace {

using nlohmann::json;

constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";

// A field of the wire format: length and bytes. All texts here are shorter than 128.
std::string field(int number, const std::string& bytes) {
  const int tag = number << 3 | 2;
  std::string out = tag < 128 ? std::string{static_cast<char>(tag)}
                              : std::string{static_cast<char>((tag & 127) | 128), static_cast<char>(tag >> 7)};
  return out + static_cast<char>(bytes.size()) + bytes;
}
std::string number(int field_number, int value) {
  return {static_cast<char>(field_number << 3), static_cast<char>(value)};
}
std::string envelope(const std::string& api_version, const std::string& kind, const std::string& raw) {
  return std::string("k8s\0", 4) + field(1, field(1, api_version) + field(2, kind)) + field(2, raw);
}

TEST(Protobuf, creates_what_the_same_json_would) {
  Api api;
  const std::string metadata = field(1, "a") + field(2, "") + field(8, "") + field(11, field(1, "k") + field(2, "v"));
  const std::string config_map = field(1, metadata) + field(2, field(1, "any") + field(2, "text")) + number(4, 1);
  ASSERT_EQ(api.send_text(k8s::Method::post, "/api/v1/namespaces/default/configmaps",
                          envelope("v1", "ConfigMap", config_map), kProtobuf)
                .status,
            201);
  ASSERT_EQ(api.post("/api/v1/namespaces/default/configmaps", {{"metadata", {{"name", "b"}, {"labels", {{"k", "v"}}}}},
                                                               {"data", {{"any", "text"}}},
                                                               {"immutable", true}})
                .status,
            201);
  json one = api.get("/api/v1/namespaces/default/configmaps/a").body;
  json other = api.get("/api/v1/namespaces/default/configmaps/b").body;
  for (json* object : {&one, &other})
    for (const char* own : {"name", "uid", "resourceVersion"}) (*object)["metadata"].erase(own);
  EXPECT_EQ(one, other);
}

TEST(Protobuf, knows_times_quantities_numbers_and_inlined_messages) {
  const std::string quantity = field(1, "2");
  const std::string volume = field(1, "config") + field(2, field(19, field(1, field(1, "mps-config"))));
  const std::string port = field(1, "http") + number(3, 80);
  const std::string container =
      field(1, "c") + field(6, port) + field(8, field(1, field(1, "nvidia.com/gpu") + field(2, quantity)));
  const std::string raw = field(1, field(1, "p")) + field(2, field(1, volume) + field(2, container) + number(4, 30));
  const auto pod = decode_protobuf(envelope("v1", "Pod", raw), builtin_schema("core.Pod"));
  ASSERT_TRUE(pod.has_value()) << pod.error();
  const json expected = json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{
    "terminationGracePeriodSeconds":30,"volumes":[{"name":"config","configMap":{"name":"mps-config"}}],
    "containers":[{"name":"c","ports":[{"name":"http","containerPort":80}],"resources":{"limits":{"nvidia.com/gpu":"2"}}}]}})");
  EXPECT_EQ(*pod, expected);
}

TEST(Protobuf, bytes_that_are_no_message_are_refused_and_no_prefix_of_one_crashes) {
  Api api;
  const auto create = [&](const std::string& body) {
    return api.send_text(k8s::Method::post, "/api/v1/namespaces", body, kProtobuf);
  };
  EXPECT_EQ(create("{}").status, 400);
  EXPECT_EQ(create(std::string("k8s\0\x0a\x7f", 6)).status, 400);
  EXPECT_EQ(create(std::string("k8s\0\x0b", 5)).status, 400) << "a group is no wire type of ours";
  const std::string whole = envelope("v1", "Namespace", field(1, field(1, "made")));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(create(whole.substr(0, size)).status, 201) << size;
  EXPECT_EQ(create(whole).status, 201);
  EXPECT_EQ(create(envelope("v1", "ConfigMap", field(1, field(1, "other")))).status, 400);
}

}  // namespace
}  // namespace gso::sim::apiserver_test_protobuf
