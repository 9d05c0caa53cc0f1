// Which nodes' GPUs the scheduler would also allocate by DRA, while DeviceClasses and ResourceSlices are created and
// deleted.
#include "reconcilers/cluster/other_systems.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"

namespace gso::dra_offers_test {
namespace {

using Names = std::vector<std::string>;

ResourceSlice slice(const std::string& name, const std::string& node, std::string_view driver = kGpuDraDriver,
                    bool offers = true) {
  ResourceSlice out;
  out.meta.name = name;
  out.driver = Interned(driver);
  out.node = Interned(node);
  out.offers = offers;
  return out;
}

DeviceClass device_class(const std::string& name, std::string_view resource) {
  DeviceClass out;
  out.meta.name = name;
  out.extended_resource = Interned(resource);
  return out;
}

TEST(DraOffers, ANodeIsOfferedTwiceWithASliceOfTheDriverAndAClassThatNamesGpus) {
  World world;
  DraOffers offers;
  offers.attach(world);
  world.resource_slices.apply(slice("a", "n1"));
  world.resource_slices.apply(slice("b", "n2", "cpu.example.com"));
  world.resource_slices.apply(slice("c", "n3", kGpuDraDriver, false));
  world.resource_slices.apply(slice("d", ""));
  offers.refresh(world);
  EXPECT_EQ(offers.class_of("n1"), "") << "no class names GPUs";
  (void)offers.take_changed_nodes();

  world.device_classes.apply(device_class("mig", "nvidia.com/mig-1g.5gb"));
  world.device_classes.apply(device_class("gpu", kGpuResource));
  offers.refresh(world);
  EXPECT_EQ(offers.take_changed_nodes(), Names{"n1"});
  EXPECT_EQ(offers.class_of("n1"), "gpu");
  EXPECT_EQ(offers.class_of("n2"), "");
  EXPECT_EQ(offers.class_of("n3"), "");
  EXPECT_EQ(offers.nodes(world), Names{"n1"});

  // A second pool is created on the node, and the first one is deleted.
  world.resource_slices.apply(slice("e", "n1"));
  world.resource_slices.erase({"", "a"});
  offers.refresh(world);
  EXPECT_EQ(offers.class_of("n1"), "gpu");
  world.resource_slices.erase({"", "e"});
  world.resource_slices.apply(slice("c", "n3"));
  offers.refresh(world);
  EXPECT_EQ(offers.nodes(world), Names{"n3"});
  EXPECT_EQ(offers.take_changed_nodes(), (Names{"n1", "n3"}));

  // A new index has the same result.
  DraOffers again;
  again.refresh(world);
  EXPECT_EQ(again.nodes(world), Names{"n3"});
  world.device_classes.apply(device_class("gpu", ""));
  offers.refresh(world);
  EXPECT_EQ(offers.take_changed_nodes(), Names{"n3"});
  EXPECT_EQ(offers.nodes(world), Names{});
}

// As Kubernetes says of extendedResourceName.
TEST(DraOffers, TheClassThatWasCreatedLastIsTaken) {
  World world;
  DraOffers offers;
  offers.attach(world);
  world.resource_slices.apply(slice("a", "n1"));
  const auto add = [&](const std::string& name, int second) {
    DeviceClass one = device_class(name, kGpuResource);
    one.meta.creation_timestamp = WallTime(std::chrono::seconds(second));
    world.device_classes.apply(one);
    offers.refresh(world);
    return offers.class_of("n1");
  };
  EXPECT_EQ(add("m", 10), "m");
  EXPECT_EQ(add("a", 20), "a");
  EXPECT_EQ(add("b", 20), "a") << "of two that were created at once, the first by name";
  EXPECT_EQ(add("z", 15), "a");
  EXPECT_EQ(add("z", 21), "z");
}

TEST(DraOffers, ASliceForAllNodesCoversEveryNode) {
  World world;
  DraOffers offers;
  offers.attach(world);
  Node node;
  node.meta.name = "n7";
  world.nodes.apply(node);
  world.device_classes.apply(device_class("gpu", kGpuResource));
  offers.refresh(world);
  (void)offers.take_changed_nodes();
  EXPECT_EQ(offers.class_of("n7"), "");
  ResourceSlice everywhere = slice("a", "");
  everywhere.all_nodes = true;
  world.resource_slices.apply(everywhere);
  offers.refresh(world);
  EXPECT_EQ(offers.take_changed_nodes(), Names{"n7"});
  EXPECT_EQ(offers.class_of("n7"), "gpu");
  EXPECT_EQ(offers.nodes(world), Names{"n7"});
  world.resource_slices.erase({"", "a"});
  offers.refresh(world);
  EXPECT_EQ(offers.take_changed_nodes(), Names{"n7"});
  EXPECT_EQ(offers.nodes(world), Names{});
}

}  // namespace
}  // namespace gso::dra_offers_test
