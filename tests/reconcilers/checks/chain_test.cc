// The chain of checks: its table, single checks against GPUs and releases, and the answers that nodes share.
#include "reconcilers/checks/catalogue.h"
#include "reconcilers/checks/check.h"
#include "reconcilers/model/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace gso::chain_test {
namespace {

using Codes = std::vector<std::string>;

// A setup with everything that a profile needs, and the objects that it references.
struct Workshop {
  PluginInstallation installation;
  Operand plugin, mps;
  EffectiveKey key;
  ProfileCache profiles;
  GpuFacts facts;

  explicit Workshop(const std::string& release = "v0.20.0") {
    facts.count = 2;
    installation.ns = "gpu-operator";
    installation.config_map = "mps-config";
    plugin.key = {"gpu-operator", "plugin"};
    plugin.node_label = "nvidia.com/device-plugin.config";
    plugin.config_map = installation.config_map;
    plugin.default_key = "any";
    plugin.mps_root = true;
    plugin.version = PluginVersion::of_image("nvcr.io/nvidia/k8s-device-plugin:" + release);
    mps.component = Component::mps;
    mps.key = {"gpu-operator", "mps"};
    mps.config_map = installation.config_map;
    mps.node_label = plugin.node_label;
    mps.default_key = plugin.default_key;
    key = {EffectiveKey::Source::default_key, "any", ""};
  }

  Workshop& with(std::vector<Device> gpus) {
    facts.devices = std::move(gpus);
    return *this;
  }
  Workshop& by_label(const std::string& name) {
    key = {EffectiveKey::Source::label, name, ""};
    return *this;
  }

  Setup setup(const std::string& text) {
    Setup out{.installation = installation, .plugin = plugin, .mps = &mps, .config_map_exists = true, .key = key};
    out.profile = profiles.compile(text);
    EXPECT_TRUE(out.profile->valid) << out.profile->error;
    out.labelled = key.source == EffectiveKey::Source::label;
    out.gpus = &facts;
    return out;
  }

  Codes codes(const std::string& text) {
    Codes out;
    for (const Diagnostic& d : run_preflight(setup(text))) out.push_back(d.code);
    return out;
  }
};

Device gpu(int major, int minor, bool mig = false) {
  Device device;
  device.name = "GPU";
  device.memory_mib = 16384;
  device.compute_major = major;
  device.compute_minor = minor;
  device.mig_capable = mig;
  device.mig_enabled = mig;
  return device;
}

std::string mps(int replicas, const std::string& more = "") {
  return fmt::format("sharing: {{mps: {{{}resources: [{{name: gpu, replicas: {}}}]}}}}", more, replicas);
}

// The sidecar's defect is reported for every release in which MPS works.
Codes with_sidecar(Codes codes) {
  codes.emplace_back("MPSSidecarCannotSignal");
  return codes;
}

TEST(Chain, EveryRowHasOneFunctionACodeOfItsOwnAndAReasonOfTheClosedList) {
  std::set<std::string_view> codes;
  for (const Check& check : checks()) {
    SCOPED_TRACE(check.code);
    EXPECT_TRUE(codes.insert(check.code).second);
    EXPECT_TRUE(check.of_setup != nullptr || check.of_node != nullptr || check.of_objects != nullptr);
    EXPECT_TRUE(check.of_setup == nullptr || check.of_node == nullptr);
    EXPECT_FALSE(meaning_of(check.code).empty());
    EXPECT_FALSE(remedy_of(check.code).empty());
    EXPECT_TRUE(check.blocks.empty() || find_blocked_reason(check.blocks) != nullptr);
    EXPECT_TRUE(check.blocks.empty() || check.severity == Severity::error);
    EXPECT_EQ(find_check(check.code), &check);
  }
  EXPECT_EQ(find_check("NoSuchCode"), nullptr);
}

// What a check says of a Ready node; empty: nothing.
std::string said(std::string_view check, const NodeSetup& asked) {
  const Complaints found = find_check(check)->of_node(asked);
  return found.empty() ? std::string() : found.front().message;
}

Node node_that_serves(int gpus) {
  Node node;
  node.ready = true;
  node.allocatable[k8s::Interned("nvidia.com/gpu")] = gpus;
  return node;
}

Operand gfd_elsewhere() {
  Operand gfd;
  gfd.component = Component::gfd;
  gfd.key = {"elsewhere", "gfd"};
  return gfd;
}

TEST(Chain, ANodeThatAnyGfdServesDoesNotStartWithoutItsProductLabel) {
  Workshop shop;
  const Operand gfd = gfd_elsewhere();
  const auto complaint = [&](const Operand* own, const Operand* other, bool labelled) {
    Node node = node_that_serves(2);
    if (labelled) node.meta.labels.set("nvidia.com/gpu.product", "Tesla-T4");
    NodeSetup asked{.setup = shop.setup("version: v1"), .node = node};
    asked.setup.gfd = own;
    asked.setup.other_gfd = other;
    asked.starts = true;
    return said("LabelsMissing", asked);
  };
  EXPECT_TRUE(complaint(&gfd, nullptr, false).contains("DaemonSet elsewhere/gfd"));
  EXPECT_TRUE(complaint(nullptr, &gfd, false).contains("DaemonSet elsewhere/gfd"));
  EXPECT_EQ(complaint(nullptr, &gfd, true), "");
  EXPECT_EQ(complaint(nullptr, nullptr, false), "") << "nobody writes the label there";
}

TEST(Chain, ABrokenNodeIsRepairedWithoutLabelsUnlessAPolicySelectsByThem) {
  Workshop shop;
  const Operand gfd = gfd_elsewhere();
  SharingPolicy observing;
  observing.meta.name = "by-product";
  const auto complaint = [&](bool starts, bool serves, bool cordoned, const SharingPolicy* awaited_by) {
    Node node = node_that_serves(serves ? 2 : 0);
    node.unschedulable = cordoned;
    NodeSetup asked{.setup = shop.setup("version: v1"), .node = node};
    asked.setup.gfd = &gfd;
    asked.starts = starts;
    asked.reloads = !starts;
    asked.awaited_by = awaited_by;
    return said("LabelsMissing", asked);
  };
  EXPECT_EQ(complaint(true, true, true, nullptr), "") << "it starts, and is cordoned";
  EXPECT_TRUE(complaint(true, true, true, &observing).contains("by-product"));
  EXPECT_EQ(complaint(false, false, false, nullptr), "") << "it is out of service";
  EXPECT_NE(complaint(false, false, false, &observing), "");
  EXPECT_NE(complaint(false, true, true, nullptr), "") << "a node that serves is not repaired for its labels";
}

TEST(Chain, AnInlineProfileNeedsRoomInTheConfigMap) {
  Workshop shop;
  SharingPolicy policy;
  policy.meta.name = "eight";
  policy.inline_profile.emplace();
  const auto complaint = [&](std::size_t bytes) {
    Node node;
    ConfigMap config_map;
    config_map.data["notes"] = std::make_shared<const std::string>(bytes, '#');
    NodeSetup asked{.setup = shop.setup("version: v1"), .node = node};
    asked.config_map = &config_map;
    asked.policy = &policy;
    asked.managed_key = "gso-eight-0123456789";
    return said("ConfigMapFull", asked);
  };
  EXPECT_EQ(complaint(900'000), "");
  EXPECT_TRUE(complaint(1'000'000).contains("has no room for key gso-eight-0123456789 of policy eight"));
}

TEST(Chain, MpsAndMigExcludeEachOther) {
  EXPECT_EQ(Workshop().with({gpu(8, 0), gpu(8, 0, true)}).codes(mps(4)), with_sidecar({"MIGEnabled"}));
  Workshop mixed;
  mixed.plugin.mig_strategy = "mixed";
  EXPECT_EQ(mixed.with({gpu(8, 0)}).codes(mps(4)), with_sidecar({"MPSWithMixedMIG"}));
  Workshop single;
  single.plugin.mig_strategy = "single";
  EXPECT_EQ(single.with({gpu(8, 0), gpu(8, 0, true)}).codes("flags: {migStrategy: mixed}"), Codes{"MIGNotUniform"});
}

TEST(Chain, EntriesForOtherDevicesAreNamed) {
  EXPECT_EQ(
      Workshop()
          .with({gpu(8, 0)})
          .codes("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}, {name: mig-1g.5gb, replicas: 2}]}}"),
      Codes{"NameMatchesNothing"});
  EXPECT_EQ(Workshop()
                .with({gpu(8, 0)})
                .codes("sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 4}]}}"),
            Codes{});
}

TEST(Chain, DefectsDependOnTheRelease) {
  const std::string relaxed = mps(4, "failRequestsGreaterThanOne: false, ");
  const std::string newer =
      "{flags: {nvidiaDevRoot: /x, gdrcopyEnabled: true, gdsEnabled: true}, imex: {channelIDs: [0]}}";
  const std::string none = "version: v1";
  struct Row {
    std::string release, text;
    bool by_label;
    Codes expected;
  };
  const std::vector<Row> rows{
      {"v0.18.1", none, true, {}},
      {"v0.18.2", none, true, {"DefaultFirstStart"}},
      {"v0.20.0", none, false, {}},
      {"v0.20.0", none, true, {"DefaultFirstStart"}},
      {"latest", none, true, {"DefaultFirstStart"}},
      {"v0.17.4", mps(4), false, {"MPSSidecarCannotSignal"}},
      {"v0.19.3", mps(4), false, {"MPSSidecarPanics"}},
      {"v0.20.0", mps(4), false, {"MPSSidecarCannotSignal"}},
      {"v0.17.4", relaxed, false, {"FailRequestsForced", "MPSSidecarCannotSignal"}},
      {"v0.20.0", relaxed, false, {"MPSSidecarCannotSignal"}},
      {"v0.14.5", mps(4), false, {"MPSNotInRelease"}},
      {"v0.15.0", mps(4), false, {"MPSSidecarCannotSignal"}},
      {"v0.15.1", newer, false, {"FieldNotInRelease", "FieldNotInRelease", "FieldNotInRelease"}},
      {"v0.17.4", newer, false, {"FieldNotInRelease"}},
      {"v0.18.0", newer, false, {}},
      {"latest", newer, false, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.release + " " + row.text);
    Workshop workshop(row.release);
    if (row.by_label) workshop.by_label("other");
    EXPECT_EQ(workshop.codes(row.text), row.expected);
  }
}

// Regression: it was reported for a node whose label names the default itself.
TEST(Chain, TheDefaultsOwnLabelHasNoOtherFirstStart) {
  EXPECT_EQ(Workshop("v0.20.0").by_label("any").codes("version: v1"), Codes{});
}

// Regression: one moved all other nodes, the other broke the CUDA programs of a busy node, and neither said so.
TEST(Chain, RemediesNameWhatTheyDoToOtherNodesAndToRunningPrograms) {
  const auto remedy = [](std::string_view code) { return std::string(find_check(code)->remedy); };
  EXPECT_TRUE(remedy("DefaultFirstStart").contains("moves every node of the plugin that has no label"));
  for (const std::string_view code : {"MPSSidecarPanics", "MPSSidecarCannotSignal"}) {
    const std::string text = remedy(code);
    EXPECT_LT(text.find("breaks the running CUDA programs"), text.find("delete the pods of the MPS daemon and GFD"));
    EXPECT_TRUE(text.contains("once no pod uses its GPUs")) << code;
  }
}

// Regression: a node that runs b was advised to make a the default, because a and b have the same text.
TEST(PreflightCache, TwoKeysOfOneTextHaveAnswersOfTheirOwn) {
  PreflightCache cache;
  Workshop workshop;
  const auto message = [&](const std::string& key) {
    const PreflightCache::Answer answer = cache.check(workshop.by_label(key).setup(mps(4)));
    const auto refused = std::ranges::find(*answer, "MPSByLabelUnsupported", &Diagnostic::code);
    return refused == answer->end() ? std::string() : refused->message;
  };
  const gso::Setup first = workshop.by_label("a").setup(mps(4));
  const PreflightCache::Answer kept = cache.check(first);  // Held, as by a node.
  EXPECT_TRUE(message("b").contains(" selects MPS key b. ")) << message("b");
  EXPECT_TRUE(message("a").contains(" selects MPS key a. ")) << message("a");
}

// Regression: the advice named the operator's own key, which it deletes when no policy has it, as the default key of
// all nodes: typed as printed, it left them without GPUs.
TEST(Chain, MpsByLabelProposesNoGeneratedKeyAndNamesWhatAnotherDefaultDoes) {
  Workshop workshop("v0.20.0");
  const auto message = [&](const std::string& key, bool left) {
    gso::Setup setup = workshop.by_label(key).setup(mps(4));
    setup.label_left = left;
    for (const Diagnostic& d : run_preflight(setup))
      if (d.code == "MPSByLabelUnsupported") return d.message;
    return std::string();
  };
  const auto expect_parts = [&](const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_TRUE(text.contains(part)) << part << ": " << text;
  };
  const std::string everybody = "all nodes without that label would then run it";
  const std::string fix = "set fixes.mpsSignal=true in the operator's chart";
  expect_parts(message("mps-4", false), {everybody, fix, "# set DEFAULT_CONFIG to mps-4"});
  const std::string generated = message("gso-fresh-863976a492", false);
  expect_parts(generated,
               {everybody, fix, "a key of your own of ConfigMap gpu-operator/mps-config", "name that by configMapKey"});
  EXPECT_FALSE(generated.contains("\"default\":\"gso-")) << generated;
  const std::string left = message("gso-fresh-863976a492", true);
  EXPECT_TRUE(left.ends_with("Remove the label") && !left.contains("default")) << left;
  // What the release cannot do is not proposed to it.
  Workshop older("v0.19.3");
  for (const Diagnostic& d : run_preflight(older.by_label("mps-4").setup(mps(4))))
    EXPECT_FALSE(d.message.contains("mpsSignal")) << d.message;
}

TEST(PreflightCache, AlikeSetupsShareAnAnswerAndADifferenceInAnythingThatIsReadMakesAnother) {
  PreflightCache cache;
  Workshop workshop;
  const gso::Setup setup = workshop.setup(mps(4));
  const PreflightCache::Answer answer = cache.check(setup);
  EXPECT_EQ(cache.check(workshop.setup(mps(4))), answer);
  GpuFacts older = workshop.facts;
  older.compute_major = 7;
  GpuFacts partitioned = workshop.facts;
  partitioned.mig_enabled = true;
  std::vector<gso::Setup> others(8, setup);
  others[0].profile = workshop.profiles.compile(mps(8));
  others[1].gpus = &older;
  others[2].gpus = &partitioned;
  others[3].mps = nullptr;
  others[4].autoscaler = "Karpenter";
  others[5].mps_capable = "true";
  others[6].nfd_serves = true;
  others[7].label_left = true;
  std::set<PreflightCache::Answer> answers{answer};
  for (const gso::Setup& other : others) EXPECT_TRUE(answers.insert(cache.check(other)).second);
}

// Regression: without GFD the cache's key contained the node's name, so the cache grew with nodes times edits and never
// shrank.
TEST(PreflightCache, KeepsNoMoreThanWhatNodesHold) {
  constexpr int kNodes = 100;
  constexpr int kEdits = 50;
  PreflightCache cache;
  Workshop workshop;
  std::vector<GpuFacts> models(2, workshop.facts);
  models[0].product = "Tesla-T4";
  models[1].product = "A100";
  std::vector<PreflightCache::Answer> held(kNodes);
  for (int edit = 0; edit < kEdits; ++edit) {
    const std::string text =
        fmt::format("sharing: {{timeSlicing: {{resources: [{{name: gpu, replicas: {}}}]}}}}", edit + 2);
    for (int node = 0; node < kNodes; ++node) {
      gso::Setup setup = workshop.setup(text);
      setup.gpus = &models[static_cast<std::size_t>(node) % 2];
      held[static_cast<std::size_t>(node)] = cache.check(setup);
    }
  }
  EXPECT_LE(cache.size(), 64U);
  EXPECT_EQ(std::set(held.begin(), held.end()).size(), 2U);
}

}  // namespace
}  // namespace gso::chain_test
