// Which pods among manifests count as GPU clients because of their ResourceClaims.
#include "reconcilers/cluster/other_systems.h"

#include <gtest/gtest.h>

#include <string>

#include "reconcilers/cluster/manifests.h"

namespace gso::pod_claims_test {
namespace {

constexpr std::string_view kNode = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";

std::string pod(const std::string& claims, const std::string& status = "{phase: Running}") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeName: n1, resourceClaims: [" +
         claims + "], containers: [{name: c}]}, status: " + status + "}\n";
}
std::string claim(const std::string& name, const std::string& requests, const std::string& status = "{}") {
  return "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " + name +
         ", namespace: a}, spec: {devices: {requests: [" + requests + "]}}, status: " + status + "}\n";
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
      "nodeName: "
      "n1}}\n";
  const struct {
    std::string_view what;
    std::string manifests;
    bool counts;
  } rows[] = {
      {"a claim that is not known", of_x, true},
      {"and nothing of the GPUs' driver on the node", of_x + slices, false},
      {"a class of the GPUs' driver", of_x + claim("x", "{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), true},
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
           "[{cel: "
           "{expression: \"device.driver == 'gpu.nvidia.com'\"}}]}}\n",
       true},
      {"no class", of_x + claim("x", "{name: r}"), true},
      {"what it got",
       of_x + claim("x", "{name: r, exactly: {deviceClassName: nic}}",
                    "{allocation: {devices: {results: [{driver: gpu.nvidia.com}]}}}"),
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
           claim("x", "{name: r, exactly: {deviceClassName: nic}}"),
       false},
      {"one of two claims",
       pod("{name: r, resourceClaimName: x}, {name: s, resourceClaimName: y}") +
           claim("x", "{name: r, exactly: {deviceClassName: nic}}") +
           claim("y", "{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"),
       true},
      {"the claim of another namespace's name",
       of_x + "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, "
              "metadata: {name: x, namespace: b}, spec: {devices: {requests: "
              "[{name: r, exactly: {deviceClassName: nic}}]}}}\n",
       true},
  };
  for (const auto& row : rows) EXPECT_EQ(counts(row.manifests), row.counts) << row.what;
}

}  // namespace
}  // namespace gso::pod_claims_test
