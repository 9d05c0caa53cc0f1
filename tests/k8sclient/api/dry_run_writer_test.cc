// DryRunWriter: each verb is refused, whatever it is asked for.
#include "k8sclient/api/writer.h"

#include <gmock/gmock.h>

#include "tests/k8sclient/api/client_fixture.h"

namespace k8s::test::dry_run_writer_test {
namespace {

using testing::HasSubstr;

const Gvr kPods{"", "v1", "pods"};

TEST_F(ClientTest, a_dry_run_refuses_each_verb_and_names_the_object) {
  DryRunWriter writer;
  const WriteOptions options;
  const DeleteOptions any;
  const ObjectKey node{"", "n1"};
  const ObjectKey pod{"ns", "p1"};
  const Result<std::string> answers[] = {
      await(writer.create(kNodes, "", "{}", options)), await(writer.update(kNodes, node, "{}", options)),
      await(writer.merge_patch(kNodes, node, "{}", options)), await(writer.apply(kNodes, node, "{}", options))};
  for (const Result<std::string>& answer : answers) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::cancelled);
    EXPECT_THAT(answer.error().message, HasSubstr("nodes"));
  }
  const Result<void> removed = await(writer.remove(kPods, pod, any, options));
  const Result<void> evicted = await(writer.evict(pod, any, options));
  ASSERT_FALSE(removed);
  ASSERT_FALSE(evicted);
  EXPECT_EQ(removed.error().message, "delete pods ns/p1: a dry run writes nothing");
  EXPECT_EQ(evicted.error().message, "evict pods ns/p1: a dry run writes nothing");
  EXPECT_EQ(evicted.error().reason, Reason::cancelled);
}

}  // namespace
}  // namespace k8s::test::dry_run_writer_test
