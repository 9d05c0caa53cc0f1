// Which store keeps which kind, and the comparison with what we wrote.
#include "controller/runtime/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/reading/reads.h"
#include "controller/writes/schedule.h"
#include "k8sclient/watch/watch_machine.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

// A complete view shows the state of its beginning, and is longer under way than this only where nothing works.
constexpr Duration kLongestView = std::chrono::minutes(10);
// A write whose answer was lost is not executed any more after this: an API server gives up on a client that is gone,
// and whoever leads writes on for no longer without an answer (S4).
constexpr Duration kLongestExecution = std::chrono::seconds(15);

// Calls f(store, projector) for the store of a kind; false when no store keeps that kind.
template <class F>
bool with_store(World& world, const ObjectRef& object, F f) {
  const std::string& kind = object.kind;
  // A reservation pod of KAI is in its own store.
  const bool reservation =
      kind == "Pod" && world.operand_pods.find(object.key()) == nullptr && world.kai.pods.find(object.key()) != nullptr;
  if (reservation) {
    f(world.kai.pods, &project_kai_pod);
    return true;
  }
  if (kind == "Node")
    f(world.nodes, &project_node);
  else if (kind == "Pod")
    f(world.operand_pods, &project_operand_pod);
  else if (kind == "ConfigMap")
    f(world.configmaps, &project_configmap);
  else if (kind == "SharingPolicy")
    f(world.policies, &project_sharing_policy);
  else if (kind == "SharingRollout")
    f(world.rollouts, &project_sharing_rollout);
  else
    return false;
  return true;
}

const k8s::ObjectMeta* stored(World& world, const ObjectRef& object) {
  const k8s::ObjectMeta* meta = nullptr;
  with_store(world, object, [&](auto& store, auto) {
    if (const auto* found = store.find(object.key())) meta = &found->meta;
  });
  return meta;
}

}  // namespace

Expectations::Expected& Expectations::slot(const ObjectRef& object, OfNode of) {
  Expected& expected = pending_[Key{object.kind, object.key()}];
  expected.object = object;
  expected.of = std::move(of);
  expected.write = ++writes_;
  if (expected.since == MonoTime{} || expected.settled_at) expected.since = clock_->monotonic();
  expected.settled_at.reset();
  expected.learned = false;
  expected.lost_at.reset();
  expected.refresh_at = clock_->monotonic() + patience_;
  return expected;
}

void Expectations::written(const ObjectRef& object, const std::string& resource_version, OfNode of) {
  if (!with_store(*world_, object, [](auto&, auto) {})) return;
  Expected& expected = slot(object, std::move(of));
  expected.resource_version = resource_version;
  expected.gone_uid.clear();
}

void Expectations::learn(const ObjectRef& object, const std::string& answer) {
  const auto it = pending_.find(Key{object.kind, object.key()});
  if (it == pending_.end() || met(it->second)) return;  // The watch was faster.
  const k8s::ObjectMeta* now = stored(*world_, object);
  if (now == nullptr) return;
  const k8s::Uid uid = now->uid;
  with_store(*world_, object, [&](auto& store, auto project) {
    auto whole = project(answer);
    // One of the same name that was created meanwhile is another object: its watch shows that the first one is gone.
    if (!whole || uid.empty() || whole->meta.uid != uid || whole->meta.key() != object.key()) return;
    store.apply(*std::move(whole));
  });
  if (!met(it->second)) return;
  mark_settled(it->second);
  it->second.learned = true;
}

void Expectations::deleted(const ObjectRef& object, const std::string& uid, OfNode of) {
  if (stored(*world_, object) == nullptr) return;  // Consumers are in no store.
  slot(object, std::move(of)).gone_uid = uid;
}

void Expectations::unknown(const ObjectRef& object, OfNode of) {
  if (!with_store(*world_, object, [](auto&, auto) {})) return;
  if (object.kind == "Pod" && stored(*world_, object) == nullptr) return;
  Expected& expected = slot(object, std::move(of));
  expected.resource_version.clear();
  expected.gone_uid.clear();
  expected.lost_at = expected.refresh_at = clock_->monotonic();
}

bool Expectations::met(const Expected& expected) const {
  const k8s::ObjectMeta* now = stored(*world_, expected.object);
  if (!expected.gone_uid.empty())
    return now == nullptr || now->uid != expected.gone_uid || now->deletion_timestamp.has_value();
  if (expected.resource_version.empty()) return false;
  if (now == nullptr) {
    // A missing Node was deleted meanwhile, and so was what the store had; any other object might not have arrived yet.
    return expected.object.kind == "Node" || expected.learned;
  }
  return now->resource_version == expected.resource_version ||
         k8s::older(expected.resource_version, now->resource_version);
}

bool Expectations::current() {
  const MonoTime now = clock_->monotonic();
  std::erase_if(pending_, [&](const auto& entry) {
    const std::optional<MonoTime>& settled_at = entry.second.settled_at;
    return met(entry.second) && (!settled_at || now - *settled_at > kLongestView);
  });
  bool all_met = true;
  for (auto& [key, expected] : pending_) {
    if (met(expected)) continue;
    all_met = false;
    if (!expected.settled_at) continue;
    expected.settled_at.reset();
    expected.since = now;
    expected.refresh_at = now + patience_;
  }
  return all_met;
}

bool Expectations::fleet_is_current() {
  (void)current();
  return std::ranges::all_of(
      pending_, [](const auto& entry) { return entry.second.settled_at || !entry.second.of.node.empty(); });
}

NodesBeingWritten Expectations::nodes() {
  (void)current();
  NodesBeingWritten out;
  for (const auto& [key, expected] : pending_) {
    if (expected.of.node.empty() || expected.settled_at) continue;
    std::shared_ptr<const PatchNode>& change = out[expected.of.node];
    if (change == nullptr) change = expected.of.change;
  }
  return out;
}

MonoTime Expectations::next_refresh() const {
  MonoTime next = MonoTime::never();
  for (const auto& [key, expected] : pending_) next = std::min(next, expected.refresh_at);
  return next;
}

Duration Expectations::lag() const {
  Duration oldest{0};
  for (const auto& [key, expected] : pending_)
    if (!expected.settled_at) oldest = std::max(oldest, clock_->monotonic() - expected.since);
  return oldest;
}

std::vector<ObjectRef> Expectations::take_overdue() {
  std::vector<ObjectRef> out;
  for (auto& [key, expected] : pending_) {
    if (expected.refresh_at > clock_->monotonic() || met(expected)) continue;
    expected.refresh_at = MonoTime::never();
    out.push_back(expected.object);
  }
  return out;
}

// It is unknown whether a node's change was written, and the Node is still the one that it was planned for: the API
// server can execute the write a moment after the live read.
bool Expectations::can_begin_still(const Expected& expected) const {
  const PatchNode* change = expected.of.change.get();
  if (!expected.lost_at || change == nullptr || !change->resource_version) return false;
  const k8s::ObjectMeta* now = stored(*world_, expected.object);
  return now != nullptr && now->resource_version == *change->resource_version &&
         clock_->monotonic() - *expected.lost_at < kLongestExecution;
}

void Expectations::mark_settled(Expected& expected) const {
  expected.settled_at = clock_->monotonic();
  expected.refresh_at = MonoTime::never();
}

// The store shows it now, and must not show an older state again: what was read is newer than a complete view that is
// on its way, and whose objects replace those of the store. False: there is nothing to expect, before and after.
bool Expectations::expect_what_was_read(Expected& expected, const std::string& uid_before) {
  const k8s::ObjectMeta* now = stored(*world_, expected.object);
  if (now == nullptr && uid_before.empty()) return false;
  expected.resource_version = now == nullptr ? std::string() : now->resource_version;
  expected.gone_uid = now == nullptr ? uid_before : std::string();
  expected.learned = false;
  mark_settled(expected);
  return true;
}

boost::asio::awaitable<std::optional<k8s::Error>> Expectations::settle(ObjectRef object) {
  const Key key{object.kind, object.key()};
  const auto asked = pending_.find(key);
  const std::uint64_t write = asked == pending_.end() ? 0 : asked->second.write;
  const k8s::ObjectMeta* before = stored(*world_, object);
  const std::string uid_before = before == nullptr ? std::string() : std::string(before->uid);
  const k8s::Result<void> read = co_await refresh_one(object);
  const auto it = pending_.find(key);
  if (it == pending_.end() || it->second.write != write) co_return std::nullopt;
  if (read && can_begin_still(it->second)) {
    it->second.refresh_at = std::min(*it->second.lost_at + kLongestExecution, clock_->monotonic() + patience_);
    co_return std::nullopt;
  }
  if (read && expect_what_was_read(it->second, uid_before)) co_return std::nullopt;
  if (read || !k8s::retryable(read.error())) {
    pending_.erase(it);
    co_return read ? std::nullopt : std::optional(read.error());
  }
  it->second.refresh_at = clock_->monotonic() + patience_;
  co_return std::nullopt;
}

boost::asio::awaitable<k8s::Result<void>> Expectations::refresh_one(ObjectRef object) {
  k8s::CallOptions call;
  call.deadline = clock_->monotonic() + std::chrono::seconds(10);
  const k8s::Gvr resource = resource_of(object);
  const k8s::ObjectKey name = object.key();
  const k8s::ObjectMeta* known = stored(*world_, object);
  const k8s::ObjectMeta before = known == nullptr ? k8s::ObjectMeta() : *known;
  k8s::Result<std::string> answer = co_await client_->get(resource, name, call);
  if (!answer && answer.error().reason != k8s::Reason::not_found) co_return std::unexpected(answer.error());
  k8s::Result<void> outcome;
  with_store(*world_, object, [&](auto& store, auto project) {
    if (!answer) {
      // The watch may have brought a new object of this name meanwhile.
      const auto* now = store.find(name);
      if (now != nullptr && now->meta.resource_version == before.resource_version) store.erase_for_good(name);
      return;
    }
    auto live = project(*answer);
    if (!live) {
      outcome = std::unexpected(live.error());
      return;
    }
    // Its watch has deleted it meanwhile, or none covers it: nobody would ever take it out again.
    const bool covered = object.kind != "Pod" && before.resource_version.empty();
    if (store.find(name) == nullptr && !covered) return;
    outcome = take_live(store, *std::move(live), before);
  });
  co_return outcome;
}

// `before`: of the store's object when the read began. The store ignores what its watch has overtaken since.
template <class T>
k8s::Result<void> Expectations::take_live(k8s::Store<T>& store, T live, const k8s::ObjectMeta& before) {
  if (live.meta.uid == before.uid && k8s::older(live.meta.resource_version, before.resource_version)) {
    k8s::Error error{k8s::Reason::expired, 0,
                     fmt::format("the server went back in time: {} is at resourceVersion {}, {} was seen before (a "
                                 "restored etcd?)",
                                 k8s::to_string(live.meta.key()), live.meta.resource_version, before.resource_version)};
    error.causes.push_back({std::string(k8s::kBackInTimeCause), "", ""});
    contradicted_(error);
    return std::unexpected(std::move(error));
  }
  store.apply(std::move(live));
  return {};
}

boost::asio::awaitable<k8s::Result<void>> Expectations::read_as_new_leader(k8s::ObjectKey state) {
  const k8s::Result<void> record = co_await read_record(std::move(state));
  if (!record) co_return record;
  co_return co_await read_nodes_in_change();
}

// Absent before the first start, and shards of small fleets always.
boost::asio::awaitable<k8s::Result<void>> Expectations::read_record(k8s::ObjectKey state) {
  std::vector<k8s::ObjectKey> parts{state};
  for (const k8s::ObjectKey& part : state_keys(state))
    if (part != state && world_->configmaps.find(part) != nullptr) parts.push_back(part);
  for (const k8s::ObjectKey& part : parts) {
    const ObjectRef object{"v1", "ConfigMap", part.ns, part.name, ""};
    const k8s::Result<void> read = co_await refresh_one(object);
    if (!read) co_return read;
  }
  co_return k8s::Result<void>();
}

boost::asio::awaitable<k8s::Result<void>> Expectations::read_nodes_in_change() {
  std::map<std::string, k8s::ObjectMeta> before;  // Of each node that the store has in a change.
  for (const auto& [key, node] : world_->nodes.all())
    if (node->meta.labels.contains(kStateLabel)) before.emplace(key.name, node->meta);
  k8s::ListOptions options;
  options.label_selector.match_expressions.push_back({std::string(kStateLabel), k8s::LabelOperator::exists, {}});
  const auto listed = co_await list_objects<Node>(client_, resources::nodes, std::move(options), &project_node);
  if (!listed) co_return std::unexpected(listed.error());
  for (const Node& node : listed->objects) {
    const auto known = before.find(node.meta.name);
    const k8s::Result<void> taken =
        take_live(world_->nodes, node, known == before.end() ? k8s::ObjectMeta() : known->second);
    if (!taken) co_return taken;
    before.erase(node.meta.name);
  }
  // Their changes have ended.
  for (const auto& [name, meta] : before) {
    const ObjectRef object{"v1", "Node", "", name, ""};
    const k8s::Result<void> read = co_await refresh_one(object);
    if (!read) co_return read;
  }
  co_return k8s::Result<void>();
}

}  // namespace gso
