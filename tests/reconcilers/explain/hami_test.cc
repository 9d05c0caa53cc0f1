// HAMi beside NVIDIA's device plugin, as its chart installs it and as its plugin marks Nodes (v2.4.0 to v2.10.0).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <fmt/format.h>

#include "reconcilers/explain/audit.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::hami_test {
namespace {

using testing::HasSubstr;

constexpr const char* kEight = R"(nvidia.com/gpu: "8")";
// As HAMi v2.5.0 writes it: uuid, replicas, memory in MiB, cores, type, NUMA node, health.
constexpr const char* kRegistered =
    "}, annotations: {hami.io/node-handshake: 'Requesting_2026.01.02 00:00:00', hami.io/node-nvidia-register: "
    "'GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:'";

// A DaemonSet with that label on its pods, that container and image, for nodes with that label.
std::string daemonset(const std::string& component, const std::string& container, const std::string& image,
                      const std::string& selector) {
  return fmt::format(R"(---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: hami-device-plugin, namespace: kube-system, uid: ds-hami}}
spec:
  selector: {{matchLabels: {{app.kubernetes.io/component: {0}}}}}
  template:
    metadata: {{labels: {{app.kubernetes.io/component: {0}}}}}
    spec:
      nodeSelector: {{{3}}}
      containers: [{{name: {1}, image: "{2}"}}]
)",
                     component, container, image, selector);
}

// The audit's finding about node gpu-1 for that reason.
std::optional<Finding> finding(const std::string& manifests, const std::string& reason) {
  Explained explained(manifests);
  const Audit out = audit(explained.snapshot(), explained.index);
  for (const Finding& found : out.findings)
    if (found.why.code == reason && found.object.name == "gpu-1") return found;
  return std::nullopt;
}

TEST(Hami, ItsDevicePluginIsRecognizedByItsDaemonSetAndItsMarkOnTheNode) {
  struct Case {
    const char* what;
    std::string node_labels;
    std::string more;
    std::optional<Severity> severity;
  };
  const std::string here = "gpu: 'on'";
  const std::string on = ", gpu: 'on'";
  const Case cases[] = {
      {"nothing of HAMi", on, "", std::nullopt},
      {"the chart's DaemonSet", on, daemonset("hami-device-plugin", "device-plugin", "projecthami/hami:v2.5.0", here),
       Severity::error},
      {"the same from a mirror, with other labels", on,
       daemonset("gpu", "device-plugin", "registry.local:5000/mirror/hami:v2.10.0", here), Severity::error},
      {"its DaemonSet, for other nodes", "",
       daemonset("hami-device-plugin", "device-plugin", "projecthami/hami:v2.5.0", here), std::nullopt},
      {"another device plugin", on, daemonset("gpu", "device-plugin", "example.com/not-hami:v1", here), std::nullopt},
      {"the mark that it leaves behind", kRegistered, "", Severity::warning},
      {"its DaemonSet and its mark", on + kRegistered,
       daemonset("hami-device-plugin", "device-plugin", "projecthami/hami:v2.5.0", here), Severity::error},
  };
  for (const Case& c : cases) {
    const auto found = finding(cluster(kSliced, c.node_labels, kEight) + c.more, "SecondDevicePlugin");
    EXPECT_EQ(found ? std::optional(found->severity) : std::nullopt, c.severity) << c.what;
    if (!found) continue;
    EXPECT_THAT(found->why.message, HasSubstr(c.severity == Severity::error
                                                  ? "HAMi's device plugin (DaemonSet kube-system/hami-device-plugin)"
                                                  : "kubectl annotate node NODE hami.io/node-nvidia-register-"))
        << c.what;
  }
}

// The amounts of a HAMi request are known to its scheduler alone: no kubelet counts them.
TEST(Hami, ResourcesThatHamiNeverPublishesAreNoSignOfIt) {
  EXPECT_FALSE(finding(cluster(kSliced, "", R"(nvidia.com/gpu: "8", nvidia.com/gpumem: "100")"), "SecondDevicePlugin"));
}

TEST(Hami, ANodeThatOnlyHamiServesSaysWhoServesIt) {
  const std::string alone = fmt::format(R"(
apiVersion: v1
kind: Node
metadata: {{name: gpu-1, labels: {{gpu: 'on'{}}}}}
status: {{capacity: {{nvidia.com/gpu: "20"}}, allocatable: {{nvidia.com/gpu: "20"}}, conditions: [{{type: Ready, status: "True"}}]}}
)",
                                        kRegistered) +
                            daemonset("hami-device-plugin", "device-plugin", "projecthami/hami:v2.5.0", "gpu: 'on'");
  const auto found = finding(alone, "NoPlugin");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::info);
  EXPECT_THAT(found->why.message,
              HasSubstr("HAMi's device plugin (DaemonSet kube-system/hami-device-plugin) serves the"));
  EXPECT_EQ(Explained(alone).node("gpu-1").next.text(), "");
}

}  // namespace
}  // namespace gso::hami_test
