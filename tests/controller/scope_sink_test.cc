// One scope's objects in a store that others write too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/scoped_watch.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

std::string pod(int number) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"a-namespace-with-a-long-name","name":"a-pod-with-a-long-name-{0}",)"
      R"("uid":"00000000-0000-0000-0000-{0:012}","resourceVersion":"{0}"}}}})",
      number);
}

// A watch that hangs brings the deletion later than a GET that found the object gone: its name must not be needed from
// the store then.
TEST(ScopeSink, AnObjectThatLeftTheStoreByAnotherWayIsReleasedAllTheSame) {
  constexpr int kPods = 64;
  k8s::Store<Pod> store;
  ScopeCounts counts;
  ScopeSink<Pod> first(&store, &counts, &project_pod);
  ScopeSink<Pod> second(&store, &counts, &project_pod);
  for (ScopeSink<Pod>* sink : {&first, &second}) {
    sink->init();
    for (int i = 0; i < kPods; ++i) ASSERT_TRUE(sink->init_apply(pod(i)));
    sink->init_done();
  }
  for (int i = 0; i < kPods; ++i) store.erase(project_pod(pod(i))->meta.key());
  EXPECT_EQ(store.size(), 0U);
  for (int i = 0; i < kPods / 2; ++i) ASSERT_TRUE(first.remove(pod(i)));
  first.init();
  first.init_done();
  EXPECT_EQ(counts.size(), static_cast<std::size_t>(kPods)) << "the other scope holds them";
  ASSERT_TRUE(second.apply(pod(1)));
  EXPECT_EQ(store.size(), 1U) << "one that comes back is there again";
  second.release_all();
  EXPECT_TRUE(counts.empty());
  EXPECT_EQ(store.size(), 0U);
}

}  // namespace
}  // namespace gso
