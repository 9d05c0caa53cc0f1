// KaiReader::still_due: reads everything that the deletions of a pass depend on again, and judges it again.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/kai/kai_lookups.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/kai/judgement.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

constexpr std::size_t kReaders = 8;
// BindRequests are small and may be tens of thousands: few round trips.
constexpr int kRequestPage = 1000;

const DeletePod& deletion_of(const PlannedAction& planned) {
  return std::get<DeletePod>(planned.action);
}

}  // namespace

// One of many independent reads. A read that fails gives no answer, so the reservations that depend on it are kept.
struct KaiReader::Job {
  enum class Kind { multi_device_pods, node_gone, pod_alive, devices } kind = Kind::multi_device_pods;
  k8s::ObjectKey key;  // The group's name, the Node, the Pod, the ConfigMap.
};

struct KaiReader::Look {
  KaiView view;
  k8s::CallOptions limits;
  std::vector<PlannedAction> deletions;
  std::map<k8s::ObjectKey, std::string> group_of;  // By reservation.
  std::set<std::string> groups;
  std::set<std::string> doubled;                     // Groups with a duplicate that is to be deleted.
  std::set<std::string> vanished;                    // Nodes that the stores show as deleted.
  std::map<std::string, std::vector<KaiPod>> plain;  // By group; absent: not known.
  std::map<std::string, std::vector<KaiPod>> multi;  // By group; absent: not known.
  std::vector<BindRequest> requests;                 // Those that name one of the groups.
  std::map<k8s::ObjectKey, bool> alive;
  std::map<k8s::ObjectKey, LookupResults::Devices> devices;
  std::set<std::string> gone;         // Nodes that a live read confirms as deleted.
  std::optional<k8s::Error> trouble;  // The first.

  [[nodiscard]] bool known(const std::string& group) const { return plain.contains(group) && multi.contains(group); }

  [[nodiscard]] GroupFacts facts(const std::string& group) const {
    GroupFacts out;
    out.group = group;
    std::set<std::string> seen;
    for (const auto* pods : {&plain.at(group), &multi.at(group)}) {
      for (const KaiPod& pod : *pods) {
        if (!seen.insert(std::string(pod.meta.uid.str())).second) continue;
        const KaiRole role = role_of(pod, view);
        if (role == KaiRole::consumer) out.consumers.push_back(&pod);
        // One of another group may carry this one's multi-device label: it is none of this group's for that.
        if (role == KaiRole::reservation && pod.meta.labels.get(kai::kGroupLabel) == group)
          out.reservations.push_back(&pod);
      }
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

boost::asio::awaitable<k8s::Result<void>> KaiReader::perform(LookPtr look, Job job) {
  const k8s::CallOptions limits = look->limits;
  if (job.kind == Job::Kind::multi_device_pods) {
    k8s::Result<std::vector<KaiPod>> pods = co_await multi_device_pods(job.key.name, limits);
    if (!pods) co_return std::unexpected(pods.error());
    look->multi[job.key.name] = *std::move(pods);
  } else if (job.kind == Job::Kind::node_gone) {
    const k8s::Result<std::string> read = co_await client_->get(resources::nodes, job.key, limits);
    if (read) co_return k8s::Result<void>{};
    if (read.error().reason != k8s::Reason::not_found) co_return std::unexpected(read.error());
    look->gone.insert(job.key.name);
  } else if (job.kind == Job::Kind::pod_alive) {
    const k8s::Result<bool> alive = co_await is_pod_alive(job.key, limits);
    if (!alive) co_return std::unexpected(alive.error());
    look->alive[job.key] = *alive;
  } else {
    const k8s::Result<LookupResults::Devices> found = co_await devices_in(job.key, limits);
    if (!found) co_return std::unexpected(found.error());
    look->devices[job.key] = *found;
  }
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<void> KaiReader::try_job(LookPtr look, Job job) {
  const k8s::Result<void> done = co_await perform(look, std::move(job));
  if (!done && !look->trouble) look->trouble = done.error();
}

boost::asio::awaitable<void> KaiReader::run_jobs(LookPtr look, std::vector<Job> jobs) {
  std::vector<boost::asio::awaitable<void>> tasks;
  for (Job& job : jobs) tasks.push_back(try_job(look, std::move(job)));
  const std::function<bool()> never = [] { return false; };
  co_await run_side_by_side(&readers_, std::move(tasks), kReaders, never);
}

// One list answers for all groups; multi-device consumers carry a key for each group, and need a list for each.
boost::asio::awaitable<k8s::Result<void>> KaiReader::gather_pods(LookPtr look, std::set<std::string> groups) {
  for (const std::string& group : groups) {
    look->plain.erase(group);
    look->multi.erase(group);
  }
  k8s::LabelSelector selector;
  selector.match_expressions.push_back(
      {std::string(kai::kGroupLabel), k8s::LabelOperator::in, {groups.begin(), groups.end()}});
  const k8s::CallOptions limits = look->limits;
  k8s::Result<std::vector<KaiPod>> pods = co_await list_pods(selector, limits);
  if (!pods) co_return std::unexpected(pods.error());
  for (const std::string& group : groups) look->plain[group];
  for (KaiPod& pod : *pods) {
    auto group = look->plain.find(std::string(pod.meta.labels.get(kai::kGroupLabel).value_or("")));
    if (group != look->plain.end()) group->second.push_back(std::move(pod));
  }
  std::vector<Job> jobs;
  jobs.reserve(groups.size());
  for (const std::string& group : groups) jobs.push_back({Job::Kind::multi_device_pods, {"", group}});
  co_await run_jobs(look, jobs);
  co_return k8s::Result<void>{};
}

// After the pods: a bind that was not labelled then still has its BindRequest now.
boost::asio::awaitable<k8s::Result<void>> KaiReader::gather_requests(LookPtr look) {
  const k8s::CallOptions limits = look->limits;
  const k8s::Result<bool> configs = co_await client_->served(resources::kai_configs, limits);
  if (!configs) co_return std::unexpected(configs.error());
  const k8s::Result<bool> served = co_await client_->served(resources::bind_requests, limits);
  if (!served) co_return std::unexpected(served.error());
  if (*configs != *served)
    co_return k8s::fail(k8s::Reason::unavailable, "KAI serves one of its two APIs without the other");
  std::vector<BindRequest> found;
  if (*served) {
    k8s::ListOptions options;
    options.call = limits;
    options.page_limit = kRequestPage;
    const Look* wanted = look.get();
    std::vector<BindRequest>* into = &found;
    k8s::ItemFunction sink([wanted, into](std::optional<std::string_view> json) -> k8s::Result<void> {
      if (!json) {
        into->clear();
        return {};
      }
      k8s::Result<BindRequest> request = project_bind_request(*json);
      if (!request) return std::unexpected(request.error());
      const bool matters = std::ranges::any_of(
          request->groups, [&](const Interned& group) { return wanted->groups.contains(std::string(group.view())); });
      if (matters) into->push_back(*std::move(request));
      return {};
    });
    const k8s::Result<std::string> listed = co_await client_->list(resources::bind_requests, options, &sink);
    if (!listed) co_return std::unexpected(listed.error());
  }
  look->requests = std::move(found);
  co_return k8s::Result<void>{};
}

// Pods of BindRequests that have succeeded, and the ConfigMaps of live consumers where a duplicate is to go.
boost::asio::awaitable<void> KaiReader::gather_details(LookPtr look) {
  std::set<k8s::ObjectKey> pods;
  for (const BindRequest& request : look->requests)
    if (request.phase == "Succeeded") pods.insert({std::string(request.meta.ns.view()), request.pod_name});
  std::set<k8s::ObjectKey> config_maps;
  for (const std::string& group : look->doubled) {
    if (!look->known(group)) continue;
    for (const auto* members : {&look->plain.at(group), &look->multi.at(group)}) {
      for (const KaiPod& pod : *members) {
        const std::optional<k8s::ObjectKey> key = device_config_map(pod);
        if (key && is_alive(pod)) config_maps.insert(*key);
      }
    }
  }
  std::vector<Job> jobs;
  jobs.reserve(pods.size() + config_maps.size());
  for (const k8s::ObjectKey& pod : pods) jobs.push_back({Job::Kind::pod_alive, pod});
  for (const k8s::ObjectKey& key : config_maps) jobs.push_back({Job::Kind::devices, key});
  co_await run_jobs(look, jobs);
}

boost::asio::awaitable<k8s::Result<void>> KaiReader::confirm_leader(LookPtr look) {
  if (!elects_leader(world_->kai, look->view)) co_return k8s::Result<void>{};
  const k8s::CallOptions limits = look->limits;
  const k8s::Result<LookupResults::Lease> lease = co_await binder_lease(limits);
  if (!lease) co_return std::unexpected(lease.error());
  const std::string trouble = lease_trouble(*lease, clock_->now(), look->view.grace);
  if (!trouble.empty()) co_return k8s::fail(k8s::Reason::unavailable, trouble);
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<k8s::Result<void>> KaiReader::gather(LookPtr look) {
  const std::set<std::string> groups = look->groups;
  const k8s::Result<void> pods = co_await gather_pods(look, groups);
  if (!pods) co_return pods;
  std::vector<Job> nodes;
  for (const std::string& node : look->vanished) nodes.push_back({Job::Kind::node_gone, {"", node}});
  co_await run_jobs(look, nodes);
  const k8s::Result<void> led = co_await confirm_leader(look);
  if (!led) co_return led;
  const k8s::Result<void> requests = co_await gather_requests(look);
  if (!requests) co_return requests;
  co_await gather_details(look);
  if (!look->doubled.empty()) co_await gather_again(look);
  co_return k8s::Result<void>{};
}

// KAI may give out a duplicate's GPU while the rest is being read, and it has consumers already that would not be
// missed by it. So of its group nothing may be new since the ConfigMaps were read: what is new has no proof, and keeps
// it.
boost::asio::awaitable<void> KaiReader::gather_again(LookPtr look) {
  const std::set<std::string> groups = look->doubled;
  const k8s::Result<void> pods = co_await gather_pods(look, groups);
  k8s::Result<void> requests = pods;
  if (pods) requests = co_await gather_requests(look);
  if (requests) co_return;
  for (const std::string& group : groups) look->plain.erase(group);
  if (!look->trouble) look->trouble = requests.error();
}

KaiReader::LookPtr KaiReader::begin(std::vector<PlannedAction> deletions) {
  auto look = std::make_shared<Look>();
  look->view = view_kai(world_->kai, *settings_);
  look->limits = patience();
  const auto refused_at = [this](const PlannedAction& planned) {
    auto it = world_->kai.lookups.refusals.find(deletion_of(planned).uid);
    return it == world_->kai.lookups.refusals.end() ? k8s::MonoTime{} : it->second.at;
  };
  std::ranges::stable_sort(deletions, {}, refused_at);
  if (deletions.size() > batch_)
    deletions.erase(deletions.begin() + static_cast<std::ptrdiff_t>(batch_), deletions.end());
  look->deletions = std::move(deletions);
  for (const PlannedAction& planned : look->deletions) {
    const DeletePod& action = deletion_of(planned);
    const KaiPod* pod = world_->kai.pods.find(action.pod);
    if (pod == nullptr || role_of(*pod, look->view) != KaiRole::reservation) continue;
    const std::string group(pod->meta.labels.get(kai::kGroupLabel).value_or(""));
    look->group_of[action.pod] = group;
    look->groups.insert(group);
    if (planned.why.code == "DuplicateReservation") look->doubled.insert(group);
    if (action.grace_period_seconds) look->vanished.emplace(pod->node_name.view());
  }
  return look;
}

void KaiReader::refuse(const DeletePod& action, const std::string& why) {
  LookupResults::Refusal& refusal = world_->kai.lookups.refusals[action.uid];
  refusal.at = clock_->monotonic();
  ++refusal.count;
  log_->info("Kept a reservation after the final check", {{"pod", k8s::to_string(action.pod)}, {"why", why}});
}

std::set<k8s::ObjectKey> KaiReader::conclude(const Look& look) {
  std::set<k8s::ObjectKey> out;
  const DeviceClaims claims = device_claims(world_->kai, look.view);
  for (const PlannedAction& planned : look.deletions) {
    const DeletePod& action = deletion_of(planned);
    const auto group = look.group_of.find(action.pod);
    std::string why = "it is gone";
    if (group != look.group_of.end() && !look.known(group->second)) {
      why = fmt::format("the pods of group {} could not be listed", group->second);
    } else if (group != look.group_of.end()) {
      const GroupFacts facts = look.facts(group->second);
      for (const Judgement& j : judge(facts, claims).reservations) {
        const ObjectMeta& meta = j.reservation->meta;
        if (meta.key() != action.pod) continue;
        const bool same = meta.uid == action.uid && meta.resource_version == action.resource_version;
        why = same ? j.why.message : "it has changed";
        if (!same || j.state == GcVerdict::keep || j.why.code != planned.why.code) continue;
        const std::string node(j.reservation->node_name.view());
        const bool there = action.grace_period_seconds.has_value() && !look.gone.contains(node);
        why = there ? fmt::format("cannot confirm that node {} was deleted", node) : std::string();
      }
    }
    if (why.empty())
      out.insert(action.pod);
    else
      refuse(action, why);
  }
  return out;
}

boost::asio::awaitable<std::set<k8s::ObjectKey>> KaiReader::still_due(std::vector<PlannedAction> deletions) {
  std::set<k8s::ObjectKey> out;
  LookPtr look = begin(std::move(deletions));
  k8s::Result<void> gathered;
  if (!look->groups.empty()) gathered = co_await gather(look);
  if (gathered && clock_->monotonic() > look->limits.deadline)
    gathered = k8s::fail(k8s::Reason::timeout, "it took too long");
  if (gathered) {
    out = conclude(*look);
  } else {
    look->trouble = gathered.error();
    for (const PlannedAction& planned : look->deletions) refuse(deletion_of(planned), gathered.error().message);
  }
  const auto& trouble = look->trouble;
  batch_ = trouble ? std::max<std::size_t>(1, look->deletions.size() / 2) : std::min(kLargestBatch, 2 * batch_);
  if (trouble) {
    log_->warning("The final check of reservations failed, in part or completely",
                  {{"error", trouble->message}, {"looked", look->deletions.size()}, {"confirmed", out.size()}});
  }
  co_return out;
}

}  // namespace gso
