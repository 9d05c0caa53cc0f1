// One scope's objects in a store that others write too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "controller/watches/scoped_watch.h"
#include "k8sclient/api/object_json.h"
#include "reconcilers/model/project.h"

namespace gso::scope_sink_test {
namespace {

std::string padded(std::string json) {
  json.reserve(json.size() + k8s::kJsonPadding);
  return json;
}

// `version` 0: its number. `more`: further fields of it.
std::string pod(int number, int version = 0, const std::string& more = "") {
  return padded(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"a-namespace-with-a-long-name","name":"a-pod-with-a-long-name-{0}",)"
      R"("uid":"00000000-0000-0000-0000-{0:012}","resourceVersion":"{1}"{2})",
      number, version == 0 ? number : version, more.empty() ? "}}" : more));
}

// One scope and its store, which has room for so many bytes.
class ScopeSinkTest : public testing::Test {
 protected:
  // A complete view with these.
  void view(std::initializer_list<int> numbers) {
    sink.init();
    for (const int number : numbers) ASSERT_TRUE(sink.init_apply(pod(number)));
    sink.init_done();
  }
  const k8s::ObjectKey key = project_pod(pod(1))->meta.key();
  k8s::Store<Pod> store;
  ScopeCounts counts;
  k8s::StoreBudget<Pod> budget{
      &store, [](const Pod& pod) { return pod.meta.name.ends_with("9") ? std::size_t{300} : std::size_t{100}; }, 200};
  ScopeSink<Pod> sink{&store, &counts, &project_pod, nullptr, &budget};
};

// A watch that hangs brings the deletion later than a GET that found the object gone: its name must not be needed from
// the store then.
TEST(ScopeSinks, AnObjectThatLeftTheStoreByAnotherWayIsReleasedAllTheSame) {
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

TEST_F(ScopeSinkTest, AnObjectThatIsDeletedWhileTheFirstViewIsSentIsNotInIt) {
  for (int view = 0; view < 2; ++view) {
    sink.init();
    ASSERT_TRUE(sink.init_apply(pod(1)));
    ASSERT_TRUE(sink.init_apply(pod(2)));
    ASSERT_TRUE(sink.init_remove(pod(1)));
    sink.init_done();
    EXPECT_EQ(store.size(), 1U);
    EXPECT_EQ(counts.size(), 1U);
  }
}

TEST_F(ScopeSinkTest, WhatHasNoRoomIsLeftOutAndCounted) {
  view({1, 2, 3, 4});
  EXPECT_EQ(store.size(), 2U);
  EXPECT_EQ(sink.left_out().count(), 2U);
  EXPECT_EQ(sink.left_out().example(), "a-namespace-with-a-long-name/a-pod-with-a-long-name-3");
  EXPECT_FALSE(budget.has_room_again());
  ASSERT_TRUE(sink.apply(pod(1))) << "one that is there gets no larger";
  EXPECT_EQ(store.size(), 2U);
  ASSERT_TRUE(sink.remove(pod(1)));
  EXPECT_TRUE(budget.has_room_again());
  ASSERT_TRUE(sink.apply(pod(3)));
  EXPECT_EQ(store.size(), 2U);
  EXPECT_EQ(sink.left_out().count(), 1U);
  ASSERT_TRUE(sink.remove(pod(4)));
  EXPECT_EQ(sink.left_out().count(), 0U) << "what goes is not left out any more";
}

// Another list would leave it out again.
TEST_F(ScopeSinkTest, AnObjectThatIsLargerThanAllRoomCausesNoFurtherList) {
  view({1, 9});
  EXPECT_EQ(sink.left_out().count(), 1U);
  EXPECT_FALSE(budget.has_room_again());
  ASSERT_TRUE(sink.remove(pod(1)));
  EXPECT_FALSE(budget.has_room_again());
}

// Anybody can create pods with KAI's labels that no scheduler places.
TEST(ScopeSinks, PodsThatRunNowhereLeaveRoomForThoseOnNodes) {
  const auto kai_pod = [](int number, const std::string& node) {
    return fmt::format(R"({{"metadata":{{"name":"p-{0}","namespace":"n","uid":"u-{0}"}},"spec":{{"nodeName":"{1}"}}}})",
                       number, node);
  };
  k8s::Store<KaiPod> store;
  ScopeCounts counts;
  k8s::StoreBudget<KaiPod> budget(&store, [](const KaiPod& /*pod*/) { return std::size_t{100}; }, 400);
  ScopeSink<KaiPod> sink(&store, &counts, &project_kai_pod, nullptr, &budget);
  sink.init();
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(sink.init_apply(kai_pod(i, "")));
  for (int i = 5; i <= 6; ++i) ASSERT_TRUE(sink.init_apply(kai_pod(i, "n1")));
  sink.init_done();
  EXPECT_EQ(store.size(), 4U);
  EXPECT_EQ(sink.left_out().count(), 2U);
  EXPECT_EQ(sink.placed_left_out().count(), 0U) << "who uses a node is known";
  EXPECT_FALSE(budget.has_room_again());
  for (int i = 5; i <= 6; ++i) ASSERT_TRUE(sink.remove(kai_pod(i, "n1")));
  EXPECT_FALSE(budget.has_room_again()) << "a further list would leave the same ones out";
  ASSERT_TRUE(sink.remove(kai_pod(1, "")));
  EXPECT_TRUE(budget.has_room_again());
  for (int i = 7; i <= 10; ++i) ASSERT_TRUE(sink.apply(kai_pod(i, "n1")));
  EXPECT_EQ(sink.placed_left_out().count(), 1U) << "no more than there is room for";
}

TEST_F(ScopeSinkTest, ARestoredEtcdIsBelieved) {
  view({});
  const auto version = [&] { return store.find(key)->meta.resource_version; };
  ASSERT_TRUE(sink.apply(pod(1, 50)));
  ASSERT_TRUE(sink.apply(pod(1)));
  EXPECT_EQ(version(), "50") << "an event that comes late";
  sink.on_relist();
  view({1});
  EXPECT_EQ(version(), "1");
}

// A live GET found it gone while the list was on its way.
TEST_F(ScopeSinkTest, APodThatWasSeenGoneStaysGoneThroughARelist) {
  view({1});
  sink.on_relist();
  sink.init();
  store.erase_for_good(key);
  ASSERT_TRUE(sink.init_apply(pod(1)));
  sink.init_done();
  EXPECT_EQ(store.find(key), nullptr) << "the list had begun before";
  view({1});
  EXPECT_EQ(store.find(key), nullptr) << "a view that is only renewed can be of another server's cache";
  sink.on_relist();
  view({1});
  EXPECT_NE(store.find(key), nullptr) << "a restored etcd has it again";
}

// Who ended how stands in the last state alone, which comes with the deletion.
TEST_F(ScopeSinkTest, ListenersSeeTheLastStateBeforeAnObjectGoes) {
  std::vector<std::string> seen;
  store.add_listener([&seen](const k8s::ObjectKey&, const auto&, const auto& pod) {
    seen.push_back(pod == nullptr                                    ? "gone"
                   : pod->containers.empty()                         ? "starts"
                   : pod->containers.front().last_exit_code() == 137 ? "killed"
                                                                     : "other");
  });
  view({});
  ASSERT_TRUE(sink.apply(pod(1)));
  ASSERT_TRUE(
      sink.remove(pod(1, 9,
                      R"(,"deletionTimestamp":"2026-03-01T08:00:00Z"},)"
                      R"("status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":137}}}]}})")));
  EXPECT_EQ(seen, (std::vector<std::string>{"starts", "killed", "gone"}));
}

}  // namespace
}  // namespace gso::scope_sink_test
