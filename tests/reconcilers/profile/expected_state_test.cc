// GFD's labels and the plugin's allocatable for profiles and sets of GPUs, beyond what upstream's own answers show
// (tests/vectors/gfd_labels.json).
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/mps.h"
#include "tests/reconcilers/source_files.h"

namespace gso::expected_state_test {
namespace {

using testing::vector_facts;
using Labels = std::map<std::string, std::string>;
using Counts = std::map<std::string, std::int64_t>;

Profile profile(const std::string& text) {
  const ParsedProfile parsed = parse_profile(text);
  EXPECT_TRUE(parsed.accepted) << parsed.first_error();
  return parsed.profile;
}

Device h100() {
  Device device;
  device.name = "NVIDIA H100 NVL";
  device.memory_mib = 95830;
  device.compute_major = 9;
  device.mig_capable = true;
  return device;
}

MigDevice slice(const std::string& name, std::int64_t memory) {
  return {name, {{"memory", memory}, {"multiprocessors", 16}, {"slices.gi", 1}}};
}

Device h100_with(std::vector<MigDevice> slices) {
  Device device = h100();
  device.mig_enabled = true;
  device.mig_devices = std::move(slices);
  return device;
}

// The labels of these suffixes, separated by blanks.
std::string shown(const Expectation& e, const std::vector<std::string>& suffixes) {
  std::string out;
  for (const std::string& suffix : suffixes) {
    const auto found = e.labels.find("nvidia.com/" + suffix);
    out += (out.empty() ? "" : " ") + (found == e.labels.end() ? "(none)" : found->second);
  }
  return out;
}

const std::string kSlicing = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}";

TEST(ExpectedState, ANodeWithoutGpusShowsNothing) {
  const Expectation e = expected_state(profile(kSlicing), {});
  EXPECT_TRUE(e.labels.empty());
  EXPECT_TRUE(e.allocatable.empty());
  EXPECT_EQ(e.error, std::nullopt);
}

TEST(ExpectedState, UnderMigNoneAGpuInMigModeIsSharedByThePluginButNotInItsLabels) {
  const Expectation e = expected_state(profile(kSlicing), {h100_with({slice("1g.12gb", 11008)})});
  EXPECT_EQ(shown(e, {"gpu.replicas", "gpu.sharing-strategy", "gpu.product"}), "0 none NVIDIA-H100-NVL");
  EXPECT_EQ(e.allocatable, (Counts{{"nvidia.com/gpu", 3}}));
}

TEST(ExpectedState, UnderMigSingleTheSlicesAreTheGpus) {
  const Profile p = profile("flags: {migStrategy: single}\n" + kSlicing);
  const auto gpus = std::vector<Device>{h100_with({slice("1g.12gb", 11008), slice("1g.12gb", 11008)}),
                                        h100_with({slice("1g.12gb", 11008)})};
  const Expectation e = expected_state(p, gpus);
  EXPECT_EQ(shown(e, {"gpu.count", "gpu.memory", "gpu.product", "gpu.multiprocessors", "mig.strategy"}),
            "3 11008 NVIDIA-H100-NVL-MIG-1g.12gb-SHARED 16 single");
  EXPECT_EQ(e.allocatable, (Counts{{"nvidia.com/gpu", 9}}));
  EXPECT_EQ(e.error, std::nullopt);
}

TEST(ExpectedState, UnderMigSingleUnevenSlicesAreInvalid) {
  const Profile p = profile("flags: {migStrategy: single}\n" + kSlicing);
  const std::vector<std::vector<Device>> sets{{h100_with({})},
                                              {h100_with({slice("1g.12gb", 11008), slice("2g.24gb", 22144)})},
                                              {h100_with({slice("1g.12gb", 11008)}), h100()}};
  for (const auto& gpus : sets) {
    const Expectation e = expected_state(p, gpus);
    EXPECT_EQ(shown(e, {"gpu.product", "gpu.count", "gpu.sharing-strategy"}), "NVIDIA-H100-NVL-MIG-INVALID 0 ");
    ASSERT_TRUE(e.error.has_value());
    for (const auto& [resource, count] : e.allocatable) EXPECT_EQ(count, 0) << resource;
  }
  EXPECT_EQ(expected_state(p, {h100(), h100()}).allocatable, (Counts{{"nvidia.com/gpu", 6}}));
}

TEST(ExpectedState, UnderMigMixedEverySliceHasItsResource) {
  const Profile p = profile(
      "flags: {migStrategy: mixed}\nsharing: {timeSlicing: {resources: [{name: mig-1g.12gb.me, replicas: 4}]}}");
  const Expectation e = expected_state(
      p, {h100_with({slice("1g.12gb", 11008), slice("1g.12gb+me", 11008), slice("1g.12gb+me", 11008)}), h100()});
  EXPECT_EQ(shown(e, {"gpu.count", "gpu.replicas"}), "2 1");
  EXPECT_EQ(shown(e, {"mig-1g.12gb.count", "mig-1g.12gb.product"}), "1 NVIDIA-H100-NVL-MIG-1g.12gb");
  EXPECT_EQ(shown(e, {"mig-1g.12gb.me.replicas", "mig-1g.12gb.me.product"}), "4 NVIDIA-H100-NVL-MIG-1g.12gb.me-SHARED");
  EXPECT_EQ(e.allocatable,
            (Counts{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.12gb", 1}, {"nvidia.com/mig-1g.12gb.me", 8}}));
  EXPECT_TRUE(expected_state(p, {h100_with({slice("1c.2g.24gb", 22144)})}).error.has_value());
}

TEST(ExpectedState, MpsWithoutItsDaemonServesNothing) {
  const std::vector<std::pair<std::string, std::vector<Device>>> cases{
      {"sharing: {mps: {resources: [{name: gpu, replicas: 3}]}}", {h100_with({slice("1g.12gb", 11008)})}},
      {"sharing: {mps: {resources: [{name: gpu, replicas: 49}]}}", {h100()}},
      {"sharing: {mps: {resources: [{name: mig-1g.12gb, replicas: 3}]}}", {h100()}},
      {"flags: {migStrategy: mixed}\nsharing: {mps: {resources: [{name: gpu, replicas: 3}]}}", {h100()}}};
  for (const auto& [text, gpus] : cases) {
    const Expectation e = expected_state(profile(text), gpus);
    EXPECT_TRUE(e.error.has_value()) << text;
    EXPECT_TRUE(e.mps.empty()) << text;
    for (const auto& [resource, count] : e.allocatable) EXPECT_EQ(count, 0) << text << resource;
  }
  EXPECT_TRUE(expected_state(profile(cases[0].first), cases[0].second).labels.empty());                 // GFD exits.
  EXPECT_EQ(shown(expected_state(profile(cases[1].first), cases[1].second), {"mps.capable"}), "true");  // GFD does not.
}

TEST(ExpectedState, AnMpsClientGetsItsShareOfEveryGpu) {
  Device small = h100();
  small.memory_mib = 15360;
  Device unknown = h100();
  unknown.memory_mib = 0;
  const Expectation e =
      expected_state(profile("sharing: {mps: {renameByDefault: true, resources: [{name: gpu, replicas: 7}]}}"),
                     {h100(), small, unknown});
  ASSERT_EQ(e.mps.size(), 1u);
  EXPECT_EQ(e.mps[0].resource, "nvidia.com/gpu.shared");
  EXPECT_EQ(e.mps[0].thread_percentage, 14);
  EXPECT_EQ(e.mps[0].pinned_memory_mib_by_gpu, (std::vector<std::int64_t>{13690, 2194, 0}));
}

TEST(ExpectedState, DifferentModelsMakeTheLabelsUnreliableButNotTheCount) {
  Device display = h100();
  display.name = "NVIDIA T1000";
  display.pci_class = 0x030000;
  const Expectation e = expected_state(profile(kSlicing), {h100(), h100(), display});
  EXPECT_TRUE(e.labels_unreliable);
  EXPECT_FALSE(expected_state(Profile{}, {h100(), h100()}).labels_unreliable);
  EXPECT_EQ(shown(e, {"gpu.mode"}), "unknown");
  EXPECT_EQ(e.allocatable, (Counts{{"nvidia.com/gpu", 9}}));
}

TEST(ExpectedState, LabelsThatNfdDropsAreKeptApart) {
  Device odd = h100();
  odd.name = "NVIDIA Prototype Accelerator With A Name That Nobody Wanted To Shorten";
  const Expectation e = expected_state(Profile{}, {odd});
  EXPECT_EQ(shown(e, {"gpu.product"}), "(none)");
  EXPECT_EQ(e.dropped_labels.count("nvidia.com/gpu.product"), 1u);
}

TEST(ExpectedState, ProductsAreSanitisedAsGfdDoes) {
  EXPECT_EQ(sanitise_product("NVIDIA  GeForce (RTX) 4090 "), "NVIDIA-GeForce-RTX-4090");
  EXPECT_EQ(sanitise_product(" a / b"), "a-b");
  EXPECT_EQ(sanitise_product("x+y\tz\u00ae"), "xyz");
  EXPECT_EQ(gpu_family(11, 0), "undefined");
  EXPECT_EQ(gpu_family(12, 1), "blackwell");
}

TEST(ExpectedState, CountsBeyondSixtyFourBitsAreCutOff) {
  const Expectation e = expected_state(
      profile("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 9223372036854775807}]}}"), {h100(), h100()});
  EXPECT_EQ(e.allocatable.at("nvidia.com/gpu"), INT64_MAX);
}

TEST(ExpectedState, GpusAreReadFromANodesLabels) {
  const std::string node =
      R"({"kind":"Node","metadata":{"name":"n","labels":{"nvidia.com/gpu.product":"Tesla-T4-SHARED","nvidia.com/gpu.count":"2",
    "nvidia.com/gpu.memory":"15360","nvidia.com/gpu.compute.major":"7","nvidia.com/gpu.compute.minor":"5","nvidia.com/mig.capable":"false"}}})";
  const auto devices = devices_of_node(node);
  ASSERT_TRUE(devices.has_value());
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ(devices->front().name, "Tesla-T4");
  EXPECT_EQ(devices->front().compute_minor, 5);
  const std::string list = "kind: List\napiVersion: v1\nitems:\n- " + node + "\n";  // As `kubectl get nodes` prints it.
  const std::string annotated =
      R"({"kind":"Node","metadata":{"annotations":{"gpusharing.dev/devices":"[{\"name\":\"A\"},{\"name\":\"B\"}]"}}})";
  for (const std::string& two : {list, annotated}) {
    const auto found = devices_of_node(two);
    ASSERT_TRUE(found.has_value()) << two;
    EXPECT_EQ(found->size(), 2u) << two;
  }
  const std::string refused[] = {
      "",
      "kind: Pod",
      "kind: Node\nmetadata: {name: n}",
      "a: [",
      "kind: Node\nmetadata: {labels: {nvidia.com/gpu.product: A-MIG-1g.5gb, nvidia.com/gpu.count: '7'}}",
      list + "- " + node + "\n",
      "kind: List\nitems: []\n"};
  for (const std::string& bad : refused) EXPECT_FALSE(devices_of_node(bad).has_value()) << bad;
}

TEST(ExpectedState, GpusThatCannotBeAreRefused) {
  for (const std::string fields :
       {"\"memoryMiB\":-1", "\"memoryMiB\":1.5", "\"computeCapability\":[4294967303,5]", "\"computeCapability\":[-7,5]",
        "\"computeCapability\":[7]", "\"computeCapability\":{\"a\":1,\"b\":2}", "\"migEnabled\":1"}) {
    EXPECT_FALSE(parse_devices("[{\"name\":\"T4\"," + fields + "}]").has_value()) << fields;
  }
  EXPECT_TRUE(parse_devices(R"([{"name":"T4","memoryMiB":0,"computeCapability":[7,5]}])").has_value());
}

TEST(ExpectedState, AListOfGpusThatIsNoJsonIsRefusedWithItsPlace) {
  const std::string sample = "devices must be a JSON list of GPUs, such as [{\"name\": \"Tesla T4\"}]";
  const std::pair<std::string, std::string> table[] = {
      {"", "not JSON; " + sample},
      {"- name: Tesla T4\n", "not JSON; " + sample},
      {"{\"name\": \"Tesla T4\"}", sample},
      {"[\n  {\"name\": \"Tesla T4\", // two of them\n   \"memoryMiB\": 15360}\n]",
       "line 2, column 24: JSON has no comments; remove the comment that begins here with `//`"},
      {"[{\"name\": \"Tesla T4\", \"memoryMiB\": 15360 // MiB\n}]", "not JSON; " + sample},
  };
  for (const auto& [text, message] : table) {
    const auto devices = parse_devices(text);
    ASSERT_FALSE(devices.has_value()) << text;
    EXPECT_EQ(devices.error().message, message);
  }
}

TEST(ExpectedState, ARefusalOfANodeNamesThePlaceOrWhatIsMissing) {
  const std::string node = "kind: Node\nmetadata:\n  name: n\n  ";
  const std::pair<std::string, std::string> table[] = {
      {"kind: [", "line 1, column 8: "},
      {"version: v1\n", "the document has no kind; give a Node"},
      {"kind: Pod\nmetadata: {name: p}\n", "the document is a Pod; give a Node"},
      {node + "labels: {nvidia.com/gpu.count: \"2\"}\n",
       "the node has no annotation gpusharing.dev/devices, and not both"},
      {node + "annotations: {gpusharing.dev/devices: two}\n", "annotation gpusharing.dev/devices: not JSON; "},
  };
  for (const auto& [text, begin] : table) {
    const auto devices = devices_of_node(text);
    ASSERT_FALSE(devices.has_value()) << text;
    EXPECT_TRUE(devices.error().message.starts_with(begin)) << devices.error().message;
  }
}

TEST(ExpectedState, TheFactsOfUpstreamHold) {
  const PluginVersion current{0, 20, 0, true};
  for (const auto& fact : vector_facts("gfd_labels")) {
    const std::string kind = fact.at("fact");
    if (kind == "mps_limits") {
      const std::int64_t replicas = fact.at("replicas");
      const std::int64_t mib = fact.at("total_bytes").get<std::int64_t>() / (1 << 20);
      EXPECT_EQ(fact.at("command_mem"),
                "set_default_device_pinned_mem_limit 0 " + std::to_string(mps_pinned_memory_mib(mib, replicas)) + "M");
      EXPECT_EQ(fact.at("command_threads"),
                "set_default_active_thread_percentage " + std::to_string(mps_thread_percentage(replicas)));
    } else if (kind == "mps_max_clients") {
      const std::string capability = fact.at("computeCapability");
      const auto dot = capability.find('.');
      EXPECT_EQ(fact.at("maxClients"),
                mps_max_clients(std::stoi(capability.substr(0, dot)), std::stoi(capability.substr(dot + 1))));
    } else if (kind == "environment_overrides_file") {
      const auto devices = parse_devices(fact.at("devices").dump());
      Profile there = profile(fact.at("config"));
      there.mig_strategy = fact.at("env").value("MIG_STRATEGY", there.mig_strategy);
      EXPECT_EQ(expected_state(there, *devices).labels, fact.at("labels").get<Labels>());
    } else if (kind == "validate_request") {
      const std::string sharing = fact.at("sharing");
      const std::string description = fact.at("description");
      // Not about the profile: the device's existence, and a state that upstream never reaches.
      if (description.contains("unknown device") || description.contains("pointer nil")) continue;
      const std::string section = sharing.starts_with("mps") ? "mps" : "timeSlicing";
      const std::string fail = sharing.contains("+fail") ? "true" : "false";
      const Profile shared =
          profile(sharing == "none" ? ""
                                    : "sharing: {" + section + ": {failRequestsGreaterThanOne: " + fail +
                                          ", resources: [{name: gpu, replicas: 2}]}}");
      const std::int64_t count = static_cast<std::int64_t>(fact.at("request").size());
      EXPECT_EQ(request_refusal(shared, current, "nvidia.com/gpu", count).has_value(), fact.at("error").get<bool>())
          << description;
    }
  }
}

}  // namespace
}  // namespace gso::expected_state_test
