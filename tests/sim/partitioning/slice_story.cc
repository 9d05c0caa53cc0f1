#include "tests/sim/partitioning/slice_story.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr const char* kUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";
constexpr const char* kMark = "gpusharing.dev/partitioning";
const k8s::ObjectKey kMap{"nebuly-nvidia", "nos-device-plugin-configs"};
const k8s::Gvr kEvents{"events.k8s.io", "v1", "events"};

FleetOptions fleet_of(const std::vector<NodeSpec>& nodes, std::uint64_t seed) {
  FleetOptions options;
  options.nodes = nodes;
  options.timing.heartbeat = 0s;
  options.timing.seed = seed;
  options.act_as_scheduler = true;
  options.gpu_operator_namespace = "";
  return options;
}

// Keys whose values differ, or that only one of the two has.
std::set<std::string> changed_keys(const json& before, const json& after) {
  std::set<std::string> out;
  for (const auto& [key, value] : before.items())
    if (!after.contains(key) || after[key] != value) out.insert(key);
  for (const auto& [key, value] : after.items())
    if (!before.contains(key)) out.insert(key);
  return out;
}

bool is_labelled(const json& node) {
  return text(labels(node), kPartitioningLabel) == "mps" ||
         text(labels(node), "nos.nebuly.ai/gpu-partitioning") == "mps";
}

}  // namespace

SliceStory::SliceStory(const std::vector<NodeSpec>& nodes, const std::map<std::string, SliceCounts>& slices,
                       std::uint64_t seed)
    : TestCluster(fleet_of(nodes, seed)),
      operator_transport(server, {.user = kUser, .user_agent = "gpu-sharing-operator", .fault_seed = seed}),
      op(io.get_executor(), &operator_transport, &clock) {
  server.add_audit_listener([this](const AuditEntry& entry) { judge(entry); });
  create(kNamespaces, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "gpu-sharing-operator"}}}});
  std::map<std::string, std::string> documents;
  for (const auto& [node, counts] : slices) documents["nos-" + node] = nos_document(counts);
  for (const json& object : nos_manifests({}, documents)) {
    const std::string kind = object["kind"];
    create(kind == "Namespace" ? kNamespaces : kind == "ConfigMap" ? kConfigMaps : kDaemonSets, object);
  }
  for (const NodeSpec& node : nodes) {
    EXPECT_TRUE(eventually([&] { return server.get(kNodes, {"", node.name}).has_value(); }, 1min)) << node.name;
    if (slices.contains(node.name)) label(node.name, kConfigLabel, "nos-" + node.name);
  }
  pass(1min);
}

SliceStory::~SliceStory() {
  kill_operator();
  pass(1min);
}

void SliceStory::start_operator(const OperatorSettings& more) {
  OperatorSettings settings{{"leader-elect", "false"}};
  settings.insert(settings.end(), more.begin(), more.end());
  const auto started = op.start(settings);
  ASSERT_TRUE(started.has_value()) << started.error().message;
}

void SliceStory::kill_operator() {
  bool ended = false;
  boost::asio::co_spawn(io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
  EXPECT_TRUE(eventually([&ended] { return ended; }, 1min)) << "the operator does not end";
}

void SliceStory::ask(const std::string& pod, std::int64_t gigabytes) {
  create(kPods, consumer_pod({.name = pod, .resource = slice_resource(gigabytes)}));
}

void SliceStory::end(const std::string& pod) {
  remove(kPods, {"default", pod});
}

std::string SliceStory::phase_of(const std::string& pod) const {
  const auto object = server.get(kPods, {"default", pod});
  return object ? text(member(*object, "status"), "phase") : std::string();
}

std::string SliceStory::place_of(const std::string& pod) const {
  const auto object = server.get(kPods, {"default", pod});
  return object ? node_of(*object) : std::string();
}

bool SliceStory::runs(const std::string& pod, k8s::Duration limit) {
  return eventually([&] { return phase_of(pod) == "Running" || !trouble_.empty(); }, limit) && trouble_.empty();
}

std::set<std::string> SliceStory::keys() const {
  std::set<std::string> out;
  const json map = server.get(kConfigMaps, kMap).value();
  for (const auto& [key, value] : member(map, "data").items()) out.insert(key);
  return out;
}

bool SliceStory::event_says(const std::string& object, const std::string& reason, const std::string& mention) const {
  for (const json& event : server.list(kEvents))
    if (text(member(event, "regarding"), "name") == object && text(event, "reason") == reason &&
        text(event, "note").find(mention) != std::string::npos)
      return true;
  return false;
}

bool SliceStory::hears(const std::string& object, const std::string& reason, const std::string& mention) {
  return eventually([&] { return event_says(object, reason, mention); }, 1min);
}

std::uint64_t SliceStory::events_of(const std::string& object, const std::string& reason) const {
  std::uint64_t out = 0;
  for (const json& event : server.list(kEvents)) {
    if (text(member(event, "regarding"), "name") != object || text(event, "reason") != reason) continue;
    const json& series = member(event, "series");
    out += series.is_object() ? series.value("count", std::uint64_t{1}) : 1;
  }
  return out;
}

std::uint64_t SliceStory::moves(const std::string& node) const {
  const auto at = moves_.find(node);
  return at == moves_.end() ? 0 : at->second;
}

void SliceStory::expect_silence() {
  pass(90min);
  const std::uint64_t before = writes_;
  pass(30min);
  EXPECT_EQ(writes_, before) << "it writes although nothing changes\n" << record();
  EXPECT_EQ(trouble_, "") << record();
}

void SliceStory::wrong(const std::string& what) {
  if (trouble_.empty()) trouble_ = fmt::format("{}: {}", k8s::format_time(clock.now()), what);
}

void SliceStory::judge(const AuditEntry& entry) {
  if (entry.gvr.resource == "pods") judge_pod(entry);
  if (entry.user != kUser || entry.status >= 300 || entry.gvr.resource == "events" || entry.gvr.resource == "leases")
    return;
  ++writes_;
  if (entry.gvr.resource == "nodes") return judge_node(entry);
  if (entry.gvr.resource == "configmaps" && entry.key == kMap) return judge_config_map(entry);
  if (entry.gvr.resource == "configmaps" && entry.key.ns == "gpu-sharing-operator") return;
  wrong(fmt::format("the operator did {} {} {}", entry.verb, entry.gvr.resource, k8s::to_string(entry.key)));
}

// A label that moves names a key that is there, with every slice that a pod was given.
void SliceStory::judge_node(const AuditEntry& entry) {
  const std::string& name = entry.key.name;
  if (entry.before == nullptr || entry.after == nullptr) return wrong("the operator made or removed node " + name);
  std::set<std::string> changed = changed_keys(labels(*entry.before), labels(*entry.after));
  const bool moved = changed.erase(kConfigLabel) > 0;
  changed.erase(kPartitioningLabel);
  for (const std::string& key : changed_keys(annotations(*entry.before), annotations(*entry.after))) {
    // Its own annotation comes only with the label.
    if (key != kMark || (!moved && is_labelled(*entry.after))) changed.insert(key);
  }
  if (member(*entry.before, "spec") != member(*entry.after, "spec")) changed.insert("spec");
  for (const std::string& key : changed) wrong(fmt::format("the operator changed {} of node {}", key, name));
  if (!moved) return;
  before_.try_emplace(name, text(labels(*entry.before), kConfigLabel));
  if (!is_labelled(*entry.before)) return judge_release(name, *entry.after);
  ++moves_[name];
  const std::string key = text(labels(*entry.after), kConfigLabel);
  const std::string document = text(member(*server.get(kConfigMaps, kMap), "data"), key);
  if (document.empty()) return wrong(fmt::format("the label of node {} names {}, which is not there", name, key));
  const auto config = read_slice_config(document, fleet.node(name)->spec().gpus.size());
  if (!config) return wrong(fmt::format("key {}: {}", key, config.error()));
  SliceCounts left = config->slices;
  for (const auto& [gpu, sizes] : fleet.node(name)->slices_in_use()) {
    for (const auto& [size, count] : sizes)
      if ((left[gpu][size] -= count) < 0)
        wrong(fmt::format("key {} lacks a slice of {} GB that is in use on GPU {} of node {}", key, size, gpu, name));
  }
  for (const auto& pod : server.view(kPods))
    if (node_of(*pod) == name && text(member(*pod, "status"), "phase") == "Running") ran_at_move_.insert(uid_of(*pod));
}

// A node that has lost the label names what it named before the operator moved it first.
void SliceStory::judge_release(const std::string& name, const json& after) {
  const std::string key = text(labels(after), kConfigLabel);
  if (key != before_[name])
    wrong(fmt::format("node {} is released with the key '{}', and had '{}' before", name, key, before_[name]));
  if (annotations(after).contains(kMark)) wrong(fmt::format("node {} is released and keeps {}", name, kMark));
}

void SliceStory::judge_config_map(const AuditEntry& entry) {
  if (entry.before == nullptr || entry.after == nullptr) return wrong("the operator made or removed the ConfigMap");
  std::set<std::string> named;
  for (const auto& node : server.view(kNodes)) named.insert(text(labels(*node), kConfigLabel));
  for (const std::string& key : changed_keys(member(*entry.before, "data"), member(*entry.after, "data"))) {
    if (!key.starts_with("gso-")) wrong(fmt::format("the operator changed key {}, which is not its own", key));
    if (named.contains(key)) wrong(fmt::format("the operator changed key {}, which a label names", key));
  }
}

void SliceStory::judge_pod(const AuditEntry& entry) {
  if (entry.user == kUser && entry.status < 300) wrong("the operator wrote pod " + entry.key.name);
  if (entry.before == nullptr || entry.after == nullptr) return;
  const json& status = member(*entry.after, "status");
  const bool ended = text(status, "phase") == "Failed" && !being_deleted(*entry.after);
  if (ended && ran_at_move_.contains(uid_of(*entry.after)))
    wrong(fmt::format("pod {} ran when a label moved, and has failed", entry.key.name));
  if (namespace_of(*entry.after) != "default") return;
  for (const json& container : items(status, "containerStatuses"))
    if (container.value("restartCount", 0) > 0) wrong(fmt::format("a container of pod {} restarted", entry.key.name));
}

}  // namespace gso::sim
