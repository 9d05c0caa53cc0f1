// The fields that the client reads from an object's JSON by itself.
#include "k8sclient/api/object_json.h"

#include <gtest/gtest.h>

namespace k8s::object_json_test {
namespace {

TEST(ObjectJson, TheResourceVersionIsReadFromAnObjectAndFromItsMetadataAlone) {
  EXPECT_EQ(read_resource_version(R"({"kind":"Node","metadata":{"name":"n","resourceVersion":"42"},"spec":{}})"), "42");
  EXPECT_EQ(read_resource_version(
                R"({"kind":"PartialObjectMetadata","metadata":{"labels":{"a":"b"},"resourceVersion":"43"}})"),
            "43");
}

TEST(ObjectJson, AnAnswerThatIsNoObjectHasNoResourceVersion) {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"metadata":7})", R"({"metadata":{"resourceVersion":7}})",
                           R"({"metadata":{"resourceVersion":"7")", R"({"metadata":{"name":"n"}})"}) {
    EXPECT_EQ(read_resource_version(text), "") << text;
  }
}

}  // namespace
}  // namespace k8s::object_json_test
