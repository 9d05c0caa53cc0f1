// Nodes from protobuf are what they are from JSON.

#include <cstdint>
#include <utility>

#include "k8sclient/watch/watch_decoder.h"
#include "reconcilers/model/project.h"
#include "tests/k8sclient/protobuf_envelope.h"
#include "tests/k8sclient/recorded.h"

namespace gso::protobuf_node_test {
namespace {

using k8s::test::envelope;
using protozero::pbf_writer;

std::string first_object(const std::string& file, k8s::WatchEncoding encoding) {
  k8s::WatchDecoder decoder(k8s::WatchDecoder::kDefaultMaxLine, encoding);
  decoder.feed(k8s::test::recorded(file));
  const auto event = decoder.next();
  return event && *event ? std::string((*event)->object) : "";
}

std::string map_entry(const std::string& key, const std::string& value) {
  std::string out;
  pbf_writer writer(out);
  writer.add_string(1, key);
  writer.add_bytes(2, value);
  return out;
}

// A message with one field that is a message or a text.
std::string holding(protozero::pbf_tag_type field, const std::string& content) {
  std::string out;
  pbf_writer(out).add_message(field, content);
  return out;
}

TEST(ProtobufNodes, AreWhatTheSameApiServerWritesInJson) {
  const auto protobuf = project_node(first_object("node_watch.pb", k8s::WatchEncoding::protobuf));
  const auto json = project_node(first_object("node_watch.json", k8s::WatchEncoding::json));
  ASSERT_TRUE(protobuf) << protobuf.error().message;
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_TRUE(*protobuf == *json);
  EXPECT_EQ(protobuf->meta.name, "gpu-a");
  EXPECT_EQ(protobuf->meta.uid.str(), "161b5155-e867-48a7-966b-6f3d2c7b52b3");
  EXPECT_EQ(protobuf->meta.resource_version, "206");
  EXPECT_EQ(k8s::format_time(protobuf->meta.creation_timestamp), "2026-11-26T19:11:40Z");
  EXPECT_FALSE(protobuf->meta.deletion_timestamp);
  EXPECT_EQ(protobuf->meta.labels.size(), 4U);
  EXPECT_EQ(protobuf->meta.labels.get("empty"), "");
  EXPECT_EQ(protobuf->meta.annotations.size(), 2U) << "the third is nobody's business";
  EXPECT_EQ(protobuf->meta.annotations.get("gpusharing.dev/hold"), "café ☃");
  ASSERT_EQ(protobuf->meta.owners.size(), 2U);
  EXPECT_TRUE(protobuf->meta.owners[0].controller);
  EXPECT_EQ(protobuf->meta.owners[1].name.view(), "p");
  EXPECT_TRUE(protobuf->unschedulable);
  EXPECT_TRUE(protobuf->ready);
  ASSERT_EQ(protobuf->taints.size(), 2U);
  EXPECT_EQ(protobuf->taints[1].effect.view(), "NoExecute");
  EXPECT_EQ(protobuf->capacity.find(Interned("nvidia.com/gpu.shared"))->second, 2000);
  EXPECT_EQ(protobuf->allocatable.find(Interned("nvidia.com/gpu"))->second, 31);
  EXPECT_FALSE(protobuf->capacity.contains(Interned("cpu")));
  EXPECT_EQ(protobuf->room.cpu, 95'500);
  EXPECT_EQ(protobuf->room.pods, 110);
  EXPECT_EQ(protobuf->room.memory, std::int64_t{1'427'181'568} * 1024);
}

TEST(ProtobufNodes, ADeletionHasItsTimeTheAbsentOneNoneAndAnnotationsAreUtf8WhateverAClientHasWritten) {
  const auto node_with = [](protozero::pbf_tag_type field, const std::string& content) {
    std::string meta;
    pbf_writer fields(meta);
    fields.add_string(1, "a");
    fields.add_message(field, content);
    return project_node(envelope("Node", holding(1, meta)));
  };
  const auto deleted_at = [&](std::int64_t seconds) {
    std::string time;
    pbf_writer(time).add_int64(1, seconds);
    return node_with(9, time)->meta.deletion_timestamp;
  };
  ASSERT_TRUE(deleted_at(1'767'323'045));
  EXPECT_EQ(k8s::format_time(*deleted_at(1'767'323'045)), "2026-01-02T03:04:05Z");
  EXPECT_FALSE(node_with(9, "")->meta.deletion_timestamp) << "JSON says null";
  EXPECT_FALSE(deleted_at(INT64_MAX));
  const auto annotated = node_with(12, map_entry("gpusharing.dev/hold", "tr\xffue"));
  ASSERT_TRUE(annotated);
  EXPECT_EQ(annotated->meta.annotations.get("gpusharing.dev/hold"), "tr\xEF\xBF\xBDue");
}

TEST(ProtobufNodes, WithEqualRevisionsDifferInTheirVersionAtMost) {
  const std::string object = first_object("node_watch.pb", k8s::WatchEncoding::protobuf);
  const auto node = project_node(object);
  const auto revision = revision_of_node(object);
  ASSERT_TRUE(node);
  ASSERT_NE(revision.content, 0U);
  EXPECT_EQ(revision.name, "gpu-a");
  EXPECT_EQ(revision.resource_version, "206");
  for (std::size_t at = 0; at < object.size(); ++at) {
    std::string changed = object;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    if (revision_of_node(changed).content != revision.content) continue;
    auto read = project_node(changed);
    ASSERT_TRUE(read) << at << ": " << read.error().message;
    read->meta.resource_version = node->meta.resource_version;
    EXPECT_TRUE(*read == *node) << "byte " << at << " is read, and its change is not noticed";
  }
  for (const char* text : {"206", "f:taints", "KubeletReady", "registry.example.com/a:1"}) {
    std::string heartbeat = object;
    heartbeat[heartbeat.find(text)] ^= 1;
    EXPECT_EQ(revision_of_node(heartbeat).content, revision.content) << text;
  }
  EXPECT_EQ(revision_of_node(first_object("node_watch.json", k8s::WatchEncoding::json)).content, 0U);
}

TEST(ProtobufNodes, WhatCannotBeReadNamesTheNodeAndTheField) {
  std::string meta;
  pbf_writer(meta).add_string(1, "a");
  const std::string capacity = holding(1, map_entry("nvidia.com/gpu", holding(1, "many")));
  std::string message;
  pbf_writer fields(message);
  fields.add_message(1, meta);
  fields.add_message(3, capacity);
  const auto wrong = project_node(envelope("Node", message));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "Node a: status.capacity must be a quantity such as 8 or 2k");
  const std::pair<std::string, const char*> cases[] = {
      {envelope("Pod", message), "Node: the bytes are not a Node in protobuf"},
      {envelope("Node", ""), "Node: metadata.name must be a non-empty string"},
      {envelope("Node", "\x0a\x7f"), "Node: the message must be a Node in protobuf"},
      {std::string("k8s\0\xff", 5), "Node: the bytes are not a Node in protobuf"},
  };
  for (const auto& [text, said] : cases) {
    const auto node = project_node(text);
    ASSERT_FALSE(node) << said;
    EXPECT_EQ(node.error().message, said);
    EXPECT_EQ(node.error().reason, k8s::Reason::decode);
  }
}

}  // namespace
}  // namespace gso::protobuf_node_test
