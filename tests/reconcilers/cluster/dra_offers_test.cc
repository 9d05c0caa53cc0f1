// Which nodes' GPUs the scheduler would also allocate by DRA, while DeviceClasses and ResourceSlices are created and
// deleted.
#include "reconcilers/cluster/other_systems.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "reconcilers/cluster/manifests.h"
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

// --- Which pods among manifests count as GPU clients because of their ResourceClaims.

constexpr std::string_view kNode = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";

std::string pod(const std::string& claims, const std::string& status = "{phase: Running}") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeName: n1, resourceClaims: [" +
         claims + "], containers: [{name: c}]}, status: " + status + "}\n";
}
std::string claim(const std::string& name, const std::string& requests, const std::string& status = "{}",
                  const std::string& ns = "a") {
  return "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " + name + ", namespace: " + ns +
         "}, spec: {devices: {requests: [" + requests + "]}}, status: " + status + "}\n";
}

// Whether the pod on n1 counts.
bool counts(const std::string& manifests) {
  const auto loaded = load_manifests({{"cluster.yaml", std::string(kNode) + manifests}}, WallTime{});
  EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
  return !loaded->consumers.at("n1").pods.empty();
}

TEST(PodClaims, CountIfTheirDriverOrClassIsOneOfGpus) {
  const std::string of_x = pod("{name: r, resourceClaimName: x}");
  const std::string of_template = pod("{name: r, resourceClaimTemplateName: t}");
  const std::string slices =
      "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: dra.net, "
      "nodeName: n1}}\n";
  const std::string of_nic = "{name: r, exactly: {deviceClassName: nic}}";
  const std::string of_gpus = "{name: r, exactly: {deviceClassName: gpu.nvidia.com}}";
  const struct {
    const char* what;
    std::string manifests;
    bool counts;
  } rows[] = {
      {"a claim that is not known", of_x, true},
      {"and nothing of the GPUs' driver on the node", of_x + slices, false},
      {"a class of the GPUs' driver", of_x + claim("x", of_gpus), true},
      {"another of its classes", of_x + claim("x", "{name: r, deviceClassName: mig.nvidia.com}"), true},
      {"a class of another driver", of_x + claim("x", "{name: r, exactly: {deviceClassName: nic.example.com}}"), false},
      {"one of several alternatives",
       of_x + claim("x",
                    "{name: r, firstAvailable: [{name: a, deviceClassName: nic}, {name: b, deviceClassName: "
                    "gpu.nvidia.com}]}"),
       true},
      {"a class of the cluster that selects the driver",
       of_x + claim("x", "{name: r, exactly: {deviceClassName: shared}}") +
           "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: shared}, spec: {selectors: "
           "[{cel: {expression: \"device.driver == 'gpu.nvidia.com'\"}}]}}\n",
       true},
      {"no class", of_x + claim("x", "{name: r}"), true},
      {"what it got", of_x + claim("x", of_nic, "{allocation: {devices: {results: [{driver: gpu.nvidia.com}]}}}"),
       true},
      {"what it got, whatever the class is called",
       of_x + claim("x", "{name: r, exactly: {deviceClassName: any.nvidia.com}}",
                    "{allocation: {devices: {results: [{driver: dra.net}]}}}"),
       false},
      {"a template",
       of_template +
           "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, namespace: "
           "a}, spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: nic}}]}}}}\n",
       false},
      {"what was made of a template",
       pod("{name: r, resourceClaimTemplateName: t}",
           "{phase: Running, resourceClaimStatuses: [{name: r, resourceClaimName: x}]}") +
           claim("x", of_nic),
       false},
      {"one of two claims",
       pod("{name: r, resourceClaimName: x}, {name: s, resourceClaimName: y}") + claim("x", of_nic) +
           claim("y", of_gpus),
       true},
      {"the claim of another namespace's name", of_x + claim("x", of_nic, "{}", "b"), true},
  };
  for (const auto& row : rows) EXPECT_EQ(counts(row.manifests), row.counts) << row.what;
}

}  // namespace
}  // namespace gso::dra_offers_test
