// What a store shows its readers while a watcher and live GETs write it.
#include "k8sclient/watch/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace k8s::store_test {
namespace {

using testing::ElementsAre;

struct Thing {
  ObjectMeta meta;
  int value = 0;
  friend bool operator==(const Thing&, const Thing&) = default;
};

Thing thing(const std::string& name, int value, const std::string& resource_version, const std::string& uid = {}) {
  Thing out;
  out.meta.name = name;
  out.meta.uid = Uid(uid);
  out.meta.resource_version = resource_version;
  out.value = value;
  return out;
}

struct StoreTest : testing::Test {
  Store<Thing> store;
  std::vector<std::string> log;
  StoreTest() {
    store.add_listener([this](const ObjectKey& key, const auto& before, const auto& after) {
      const auto show = [](const auto& object) { return object ? std::to_string(object->value) : std::string("-"); };
      log.push_back(key.name + " " + show(before) + ">" + show(after));
    });
  }
  std::vector<std::string> take() { return std::exchange(log, {}); }
};

TEST_F(StoreTest, a_relist_is_swapped_in_at_its_end_and_what_is_missing_is_gone) {
  store.init();
  store.init_apply(thing("a", 1, "1"));
  store.init_apply(thing("b", 1, "1"));
  EXPECT_FALSE(store.synced());
  EXPECT_EQ(store.size(), 0U) << "readers must not see half a list";
  store.init_done();
  EXPECT_TRUE(store.synced());
  EXPECT_THAT(take(), testing::UnorderedElementsAre("a ->1", "b ->1"));

  store.init();
  store.init_apply(thing("b", 2, "5"));
  EXPECT_NE(store.find("a"), nullptr);
  store.init_done();
  EXPECT_EQ(store.find("a"), nullptr);
  EXPECT_THAT(take(), testing::UnorderedElementsAre("b 1>2", "a 1>-"));
}

TEST_F(StoreTest, a_broken_off_relist_leaves_nothing_behind) {
  store.init();
  store.init_apply(thing("half", 1, "1"));
  store.init();
  store.init_apply(thing("whole", 1, "2"));
  store.init_apply(thing("deleted meanwhile", 1, "2"));
  store.init_erase({"", "deleted meanwhile"});
  store.init_done();
  EXPECT_THAT(take(), ElementsAre("whole ->1"));
}

TEST_F(StoreTest, a_new_resource_version_alone_wakes_nobody_but_is_kept) {
  store.init();
  store.init_done();
  store.apply(thing("a", 1, "1"));
  store.apply(thing("a", 1, "2"));
  store.apply(thing("a", 2, "3"));
  store.erase({"", "a"});
  store.erase({"", "a"});
  EXPECT_THAT(take(), ElementsAre("a ->1", "a 1>2", "a 2>-"));
  store.apply(thing("a", 1, "4"));
  store.apply(thing("a", 1, "5"));
  EXPECT_EQ(store.find("a")->meta.resource_version, "5");
}

TEST_F(StoreTest, an_event_with_the_content_of_the_object_brings_its_version_alone) {
  const auto renews = [this](const char* version, std::uint64_t content = 17) {
    return store.renew({"a", version, content});
  };
  EXPECT_FALSE(renews("1")) << "there is none";
  store.apply(thing("a", 1, "1"), 17);
  EXPECT_TRUE(renews("3"));
  EXPECT_TRUE(renews("2")) << "late, and no news";
  EXPECT_EQ(store.find("a")->meta.resource_version, "3");
  EXPECT_FALSE(renews("4", 18));
  store.apply(thing("a", 2, "5"));  // A live GET.
  EXPECT_FALSE(renews("6")) << "the content was that of the object before";
  EXPECT_FALSE(renews("6", 0)) << "what is not known equals nothing";
  store.apply(thing("a", 2, "6"), 17);
  store.erase({"", "a"});
  EXPECT_FALSE(renews("7"));
  EXPECT_THAT(take(), ElementsAre("a ->1", "a 1>2", "a 2>-"));
}

TEST_F(StoreTest, an_object_that_a_reader_holds_outlives_its_removal) {
  store.apply(thing("a", 7, "1"));
  const auto held = store.get({"", "a"});
  store.erase({"", "a"});
  EXPECT_EQ(held->value, 7);
}

// A live GET can be ahead of the watch, whose events then arrive late.
TEST_F(StoreTest, late_events_do_not_undo_what_a_live_get_has_shown) {
  store.apply(thing("a", 0, "110", "first"));
  store.apply(thing("a", 0, "109", "first"));
  EXPECT_EQ(store.find("a")->meta.resource_version, "110");
  store.init();
  store.init_apply(thing("a", 0, "110", "first"));
  store.erase_for_good({"", "a"});
  store.apply(thing("a", 0, "111", "first"));
  EXPECT_EQ(store.find("a"), nullptr) << "it was deleted, as the watch will report";
  store.init_apply(thing("a", 0, "112", "first"));
  store.init_done();
  EXPECT_EQ(store.find("a"), nullptr) << "the list had begun before";
  store.apply(thing("a", 0, "112", "first"));
  EXPECT_EQ(store.find("a"), nullptr) << "so had its watch";
  store.apply(thing("a", 0, "113", "second"));
  ASSERT_NE(store.find("a"), nullptr) << "a new object of that name";
  store.erase({"", "a"});
  store.apply(thing("a", 0, "114", "first"));
  EXPECT_NE(store.find("a"), nullptr) << "the watch has reported the deletion";
}

TEST_F(StoreTest, a_restored_etcd_is_believed) {
  store.apply(thing("a", 0, "110", "first"));
  store.erase_for_good({"", "a"});
  store.init();
  store.init_apply(thing("a", 0, "7", "first"));
  store.init_done();
  ASSERT_NE(store.find("a"), nullptr);
  EXPECT_EQ(store.find("a")->meta.resource_version, "7");
}

TEST_F(StoreTest, an_absent_api_is_synced_and_empty) {
  store.apply(thing("a", 1, "1"));
  store.mark_absent();
  EXPECT_TRUE(store.synced());
  EXPECT_THAT(take(), ElementsAre("a ->1", "a 1>-"));
}

}  // namespace
}  // namespace k8s::store_test
