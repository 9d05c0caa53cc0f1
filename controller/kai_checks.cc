// Lists and GETs, and the judgement over them.
#include "controller/kai_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/judgement.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

const k8s::Gvr kPods{"", "v1", "pods"};
const k8s::Gvr kNodes{"", "v1", "nodes"};
const k8s::Gvr kConfigMaps{"", "v1", "configmaps"};
const k8s::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const k8s::Gvr kConfigs{"kai.scheduler", "v1", "configs"};
const k8s::Gvr kBindRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};
// All reads of one look together; a deletion that waits longer is judged anew.
constexpr k8s::Duration kPatience = std::chrono::seconds(10);

k8s::LabelSelector labelled(const std::string& group) {
  k8s::LabelSelector out;
  out.match_labels[std::string(kai::kGroupLabel)] = group;
  return out;
}

k8s::LabelSelector multi_labelled(const std::string& group) {
  k8s::LabelSelector out;
  out.match_expressions.push_back({std::string(kai::kGroupPrefix) + group, k8s::LabelOperator::exists, {}});
  return out;
}

}  // namespace

k8s::CallOptions KaiChecks::call() const {
  k8s::CallOptions out;
  out.deadline = clock_->monotonic() + kPatience;
  return out;
}

// A pod that cannot be read may be a live consumer: it fails the whole list.
boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> KaiChecks::list_pods(k8s::LabelSelector selector) {
  std::vector<KaiPod> found;
  k8s::ListOptions options;
  options.label_selector = std::move(selector);
  options.call = call();
  k8s::ItemFunction sink([&found](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.clear();
      return {};
    }
    k8s::Result<KaiPod> pod = project_kai_pod(*json);
    if (!pod) return std::unexpected(pod.error());
    found.push_back(*std::move(pod));
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(kPods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return found;
}

// A list by name: one verb less to grant in every namespace than a GET.
boost::asio::awaitable<k8s::Result<bool>> KaiChecks::is_pod_alive(k8s::ObjectKey pod) {
  bool alive = false;
  k8s::ListOptions options;
  options.ns = pod.ns;
  options.field_selector = k8s::FieldSelector::equals("metadata.name", pod.name);
  options.call = call();
  k8s::ItemFunction sink([&alive](std::optional<std::string_view> json) -> k8s::Result<void> {
    alive = false;
    if (!json) return {};
    const k8s::Result<KaiPod> found = project_kai_pod(*json);
    if (!found) return std::unexpected(found.error());
    alive = is_alive(*found);
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(kPods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return alive;
}

// Forbidden or gone is an answer: there is no evidence.
boost::asio::awaitable<k8s::Result<KaiLookups::Devices>> KaiChecks::devices_in(k8s::ObjectKey config_map) {
  KaiLookups::Devices out;
  out.at = clock_->now();
  const k8s::CallOptions options = call();
  const k8s::Result<std::string> read = co_await client_->get(kConfigMaps, config_map, options);
  if (!read) {
    const bool none = read.error().reason == k8s::Reason::not_found || read.error().reason == k8s::Reason::forbidden;
    if (!none) co_return std::unexpected(read.error());
    co_return out;
  }
  const k8s::Result<ConfigMap> found = project_configmap(*read);
  if (!found) co_return std::unexpected(found.error());
  auto devices = found->data.find(std::string(kai::kVisibleDevices));
  if (devices == found->data.end() || !devices->second) co_return out;
  out.known = true;
  out.devices = *devices->second;
  for (const k8s::OwnerReference& owner : found->meta.owners) out.owners.push_back(owner.uid);
  co_return out;
}

// From the API server's cache: it decides nothing.
boost::asio::awaitable<k8s::Result<KaiLookups::Waiting>> KaiChecks::waiting_pods() {
  KaiLookups::Waiting out;
  out.at = clock_->now();
  k8s::ListOptions options;
  options.field_selector = k8s::FieldSelector::equals("spec.nodeName", "");
  options.resource_version = "0";
  options.call = call();
  const std::string scaling = view_kai(world_->kai, *settings_).scaling;
  k8s::ItemFunction sink([&out, &scaling](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      out.pods.clear();
      return {};
    }
    k8s::Result<Pod> pod = project_pod(*json);
    if (!pod) return {};  // Another list's business.
    const bool fraction =
        pod->meta.annotations.contains(kai::kFraction) || pod->meta.annotations.contains(kai::kMemory);
    const bool waits = pod->phase.empty() || pod->phase == "Pending";
    if (!waits || (!fraction && pod->meta.ns.view() != scaling)) return {};
    k8s::Result<KaiPod> for_kai = project_kai_pod(*json);
    if (for_kai) out.pods.push_back({*std::move(pod), std::move(for_kai->tolerations)});
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(kPods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return out;
}

// None is an answer: then there is no election, or none that we know of.
boost::asio::awaitable<k8s::Result<KaiLookups::Lease>> KaiChecks::binder_lease() {
  KaiLookups::Lease out;
  out.at = clock_->now();
  const KaiView view = view_kai(world_->kai, *settings_);
  const k8s::ObjectKey key{view.ns, std::string(kai::kBinderLease)};
  const k8s::CallOptions options = call();
  const k8s::Result<std::string> read = co_await client_->get(kLeases, key, options);
  if (!read && read.error().reason == k8s::Reason::not_found) co_return out;
  if (!read) co_return std::unexpected(read.error());
  k8s::Result<Lease> lease = project_lease(*read);
  if (!lease) co_return std::unexpected(lease.error());
  out.known = true;
  out.holder = std::move(lease->holder);
  out.acquired = lease->acquired;
  co_return out;
}

void KaiChecks::forget_old() {
  const k8s::WallTime now = clock_->now();
  const auto old = [&](const auto& entry) { return now - entry.second.at > 5 * settings_->sweep; };
  KaiLookups& lookups = world_->kai.lookups;
  std::erase_if(lookups.groups, old);
  std::erase_if(lookups.pods, old);
  std::erase_if(lookups.config_maps, old);
}

boost::asio::awaitable<KaiChecks::Answered> KaiChecks::answer(KaiWants wants) {
  forget_old();
  KaiLookups& lookups = world_->kai.lookups;
  bool some = false;
  bool failed = false;
  const auto note = [&](const std::string& what, const auto& result) {
    if (result) {
      some = true;
    } else {
      failed = true;
      log_->warning("Could not look up for KAI", {{"what", what}, {"error", result.error().message}});
    }
  };
  for (const std::string& group : wants.groups) {
    const k8s::WallTime at = clock_->now();
    const k8s::LabelSelector selector = multi_labelled(group);
    k8s::Result<std::vector<KaiPod>> pods = co_await list_pods(selector);
    note("pods of group " + group, pods);
    if (pods) lookups.groups[group] = KaiLookups::Group{at, *std::move(pods)};
  }
  for (const k8s::ObjectKey& pod : wants.pods) {
    const k8s::WallTime at = clock_->now();
    const k8s::Result<bool> alive = co_await is_pod_alive(pod);
    note("pod " + k8s::to_string(pod), alive);
    if (alive) lookups.pods[pod] = KaiLookups::Pod{at, *alive};
  }
  for (const k8s::ObjectKey& config_map : wants.config_maps) {
    k8s::Result<KaiLookups::Devices> devices = co_await devices_in(config_map);
    note("ConfigMap " + k8s::to_string(config_map), devices);
    if (devices) lookups.config_maps[config_map] = *std::move(devices);
  }
  if (wants.waiting_pods) {
    k8s::Result<KaiLookups::Waiting> waiting = co_await waiting_pods();
    note("pods that wait", waiting);
    if (waiting) lookups.waiting = *std::move(waiting);
  }
  if (wants.binder_lease) {
    k8s::Result<KaiLookups::Lease> lease = co_await binder_lease();
    note("the binder's Lease", lease);
    if (lease) lookups.binder_lease = *std::move(lease);
  }
  if (failed) co_return Answered::failed;
  co_return some ? Answered::some : Answered::nothing;
}

// One look at everything that the deletions of a pass rest on.
struct KaiChecks::Fresh {
  std::vector<PlannedAction> deletions;
  std::map<std::string, std::vector<KaiPod>> groups;
  std::vector<BindRequest> requests;
  std::map<k8s::ObjectKey, bool> alive;
  std::map<k8s::ObjectKey, KaiLookups::Devices> devices;

  [[nodiscard]] GroupFacts facts(const std::string& group, const KaiView& view) const {
    GroupFacts out;
    out.group = group;
    for (const KaiPod& pod : groups.at(group)) {
      const KaiRole role = role_of(pod, view);
      if (role == KaiRole::reservation) out.reservations.push_back(&pod);
      if (role == KaiRole::consumer) out.consumers.push_back(&pod);
    }
    for (const BindRequest& request : requests) {
      const bool named = std::ranges::any_of(request.groups, [&](const Interned& g) { return g == group; });
      if (named) out.requests.push_back(&request);
    }
    out.pod_alive = [this](const k8s::ObjectKey& key) -> std::optional<bool> {
      auto it = alive.find(key);
      return it == alive.end() ? std::nullopt : std::optional(it->second);
    };
    out.devices = [this](const k8s::ObjectKey& key, const k8s::Uid& consumer) -> std::optional<std::string> {
      auto it = devices.find(key);
      return it == devices.end() ? std::nullopt : it->second.of(consumer);
    };
    return out;
  }
};

boost::asio::awaitable<k8s::Result<void>> KaiChecks::gather_pods(FreshPtr fresh, std::string group) {
  const k8s::LabelSelector single = labelled(group);
  k8s::Result<std::vector<KaiPod>> pods = co_await list_pods(single);
  if (!pods) co_return std::unexpected(pods.error());
  const k8s::LabelSelector multi = multi_labelled(group);
  k8s::Result<std::vector<KaiPod>> more = co_await list_pods(multi);
  if (!more) co_return std::unexpected(more.error());
  std::vector<KaiPod>& all = fresh->groups[group];
  all = *std::move(pods);
  for (KaiPod& pod : *more) {
    const bool known = std::ranges::any_of(all, [&](const KaiPod& seen) { return seen.meta.uid == pod.meta.uid; });
    if (!known) all.push_back(std::move(pod));
  }
  co_return k8s::Result<void>{};
}

// After the pods: a bind that was not labelled then still has its BindRequest now.
boost::asio::awaitable<k8s::Result<void>> KaiChecks::gather_requests(FreshPtr fresh) {
  const k8s::CallOptions limits = call();
  const k8s::Result<bool> configs = co_await client_->served(kConfigs, limits);
  if (!configs) co_return std::unexpected(configs.error());
  const k8s::Result<bool> requests = co_await client_->served(kBindRequests, limits);
  if (!requests) co_return std::unexpected(requests.error());
  if (*configs != *requests)
    co_return k8s::fail(k8s::Reason::unavailable, "KAI serves one of its two APIs without the other");
  if (!*requests) co_return k8s::Result<void>{};
  k8s::ListOptions options;
  options.call = call();
  Fresh* into = fresh.get();
  k8s::ItemFunction sink([into](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      into->requests.clear();
      return {};
    }
    k8s::Result<BindRequest> request = project_bind_request(*json);
    if (!request) return std::unexpected(request.error());
    const bool matters = std::ranges::any_of(
        request->groups, [&](const Interned& group) { return into->groups.contains(std::string(group.view())); });
    if (matters) into->requests.push_back(*std::move(request));
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(kBindRequests, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return k8s::Result<void>{};
}

// Pods of BindRequests that have succeeded, and the ConfigMaps of live consumers where a duplicate is to go.
boost::asio::awaitable<k8s::Result<void>> KaiChecks::gather_details(FreshPtr fresh) {
  std::set<k8s::ObjectKey> pods;
  for (const BindRequest& request : fresh->requests) {
    if (request.phase == "Succeeded") pods.insert({std::string(request.meta.ns.view()), request.pod_name});
  }
  for (const k8s::ObjectKey& pod : pods) {
    const k8s::Result<bool> alive = co_await is_pod_alive(pod);
    if (!alive) co_return std::unexpected(alive.error());
    fresh->alive[pod] = *alive;
  }
  std::set<k8s::ObjectKey> config_maps;
  for (const auto& [group, members] : fresh->groups) {
    for (const KaiPod& pod : members) {
      const std::optional<k8s::ObjectKey> key = device_config_map(pod);
      if (key && is_alive(pod)) config_maps.insert(*key);
    }
  }
  for (const k8s::ObjectKey& key : config_maps) {
    const k8s::Result<KaiLookups::Devices> devices = co_await devices_in(key);
    if (!devices) co_return std::unexpected(devices.error());
    fresh->devices[key] = *devices;
  }
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<k8s::Result<void>> KaiChecks::confirm_node_gone(std::string node) {
  const k8s::ObjectKey key{"", node};
  const k8s::CallOptions options = call();
  const k8s::Result<std::string> read = co_await client_->get(kNodes, key, options);
  if (read) co_return k8s::fail(k8s::Reason::conflict, fmt::format("node {} is there after all", node));
  if (read.error().reason != k8s::Reason::not_found) co_return std::unexpected(read.error());
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<k8s::Result<void>> KaiChecks::confirm_leader() {
  const k8s::Result<KaiLookups::Lease> lease = co_await binder_lease();
  if (!lease) co_return std::unexpected(lease.error());
  const std::string trouble = lease_trouble(*lease, clock_->now(), view_kai(world_->kai, *settings_).grace);
  if (!trouble.empty()) co_return k8s::fail(k8s::Reason::unavailable, trouble);
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<k8s::Result<void>> KaiChecks::gather(FreshPtr fresh) {
  std::set<std::string> groups;
  std::set<std::string> vanished;
  for (const PlannedAction& planned : fresh->deletions) {
    const auto& action = std::get<DeletePod>(planned.action);
    const KaiPod* pod = world_->kai.pods.find(action.pod);
    if (pod == nullptr) continue;
    groups.emplace(pod->meta.labels.get(kai::kGroupLabel).value_or(""));
    if (action.grace_period_seconds) vanished.emplace(pod->node_name.view());
  }
  for (const std::string& group : groups) {
    const k8s::Result<void> read = co_await gather_pods(fresh, group);
    if (!read) co_return read;
  }
  for (const std::string& node : vanished) {
    const k8s::Result<void> gone = co_await confirm_node_gone(node);
    if (!gone) co_return gone;
  }
  if (elects_leader(world_->kai, view_kai(world_->kai, *settings_))) {
    const k8s::Result<void> led = co_await confirm_leader();
    if (!led) co_return led;
  }
  const k8s::Result<void> requests = co_await gather_requests(fresh);
  if (!requests) co_return requests;
  const k8s::Result<void> details = co_await gather_details(fresh);
  co_return details;
}

boost::asio::awaitable<std::set<k8s::ObjectKey>> KaiChecks::still_due(std::vector<PlannedAction> deletions) {
  std::set<k8s::ObjectKey> out;
  auto fresh = std::make_shared<Fresh>();
  fresh->deletions = std::move(deletions);
  const k8s::MonoTime begun = clock_->monotonic();
  const k8s::Result<void> gathered = co_await gather(fresh);
  if (!gathered) {
    log_->warning("No reservation is deleted: the last look failed", {{"error", gathered.error().message}});
    co_return out;
  }
  if (clock_->monotonic() - begun > kPatience) {
    log_->warning("No reservation is deleted: the last look took too long", {});
    co_return out;
  }
  const KaiView view = view_kai(world_->kai, *settings_);
  const DeviceClaims claims = device_claims(world_->kai, view);
  for (const PlannedAction& planned : fresh->deletions) {
    const auto& action = std::get<DeletePod>(planned.action);
    std::string why = "it is gone";
    for (const auto& [group, members] : fresh->groups) {
      const GroupJudgement judged = judge(fresh->facts(group, view), claims);
      for (const Judgement& j : judged.reservations) {
        const ObjectMeta& meta = j.reservation->meta;
        if (meta.key() != action.pod) continue;
        const bool same = meta.uid == action.uid && meta.resource_version == action.resource_version;
        why = same ? j.message : "it has changed";
        if (same && j.fate != Fate::keep && j.reason == planned.reason) {
          why.clear();
          out.insert(action.pod);
        }
      }
    }
    if (!why.empty()) {
      log_->info("A reservation is kept after all", {{"pod", k8s::to_string(action.pod)}, {"why", why}});
    }
  }
  co_return out;
}

}  // namespace gso
