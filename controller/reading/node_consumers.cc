// Lists by spec.nodeName, and what is remembered between two lists of a node.
#include "controller/reading/node_consumers.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "controller/reading/reads.h"
#include "controller/writes/executor.h"
#include "k8sclient/backoff.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

namespace asio = boost::asio;

namespace {

// A node's consumers are not listed twice within this.
constexpr Duration kListingAge = std::chrono::milliseconds(200);
constexpr Duration kListingKept = std::chrono::minutes(5);
constexpr Duration kJobsAge = std::chrono::seconds(30);
constexpr Duration kLongest = std::chrono::seconds(15);
// How long refresh() waits for the next list after the last one has ended.
constexpr Duration kPatience = std::chrono::milliseconds(250);
// Until a node is listed again after its list has failed.
constexpr k8s::Backoff kBackoff{std::chrono::seconds(1), std::chrono::seconds(30)};
constexpr std::size_t kReaders = 8;  // Nodes listed at once.
// What is kept of one node's rejected pods, beside TenantFed::node_consumers. Anybody who may create pods can name the
// node, also in pods that no kubelet runs. Those beyond are seen once the others are removed.
constexpr std::size_t kMostRejected = 256;
const std::string kListFailed = "Listing the pods of a node failed";
constexpr std::size_t kMostUnreadable = 1024;
// ResourceClaims that are read for one list of pods; further ones might be for GPUs.
constexpr std::size_t kMostClaims = 512;

// Lists pods and hands over each; calls `restart` where the list starts over. Pods that cannot be decoded do not end
// the list: the answer names them, and is empty if there are none.
asio::awaitable<k8s::Result<std::string>> list_pods(k8s::Reader* client, k8s::ListOptions options,
                                                    std::function<void()> restart,
                                                    std::function<void(Pod, std::string_view json)> take) {
  std::vector<std::string> unreadable;
  k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      unreadable.clear();
      restart();
      return {};
    }
    k8s::Result<Pod> pod = project_pod(*json);
    if (pod)
      take(*std::move(pod), *json);
    else if (unreadable.size() < kMostUnreadable)
      unreadable.push_back(pod.error().message);
    return {};
  });
  const k8s::Result<std::string> listed = co_await client->list(resources::pods, options, &sink);
  if (!listed) co_return unlisted(listed.error(), resources::pods, options.ns);
  co_return unreadable.empty() ? std::string() : first_names(unreadable);
}

// What else its labels say, nobody reads of a consumer.
void drop_other_labels(Pod& pod) {
  k8s::StringMap kept;
  for (const auto& label : pod.meta.labels) {
    const std::string_view key = label.key.view();
    if (is_label_of_a_job(key) || key.starts_with(kai::kGroupLabel)) kept.set(key, label.value.view());
  }
  kept.shrink_to_fit();
  pod.meta.labels = std::move(kept);
}

// The answer to a pod's eviction is remembered while the pod exists. A pod that is ending goes on ending: a listing
// that does not say so has been read before the pod was evicted.
void keep_answers(const NodeConsumers& before, NodeConsumers& found) {
  for (Pod& pod : found.pods) {
    const std::string uid(pod.meta.uid);
    const auto known = std::ranges::find(before.pods, pod.meta.uid, [](const Pod& one) { return one.meta.uid; });
    if (known != before.pods.end() && !pod.meta.deletion_timestamp)
      pod.meta.deletion_timestamp = known->meta.deletion_timestamp;
    if (const auto answer = before.refused.find(uid); answer != before.refused.end()) found.refused.insert(*answer);
    if (const auto answer = before.forbidden.find(uid); answer != before.forbidden.end())
      found.forbidden.insert(*answer);
  }
}

bool uses_gpus_without_claims(Pod pod, const World& world) {
  pod.dra_gpu_claim = false;
  return is_gpu_consumer(pod, world);
}

// Whether one of them is for a GPU; nullopt: it might be. Error: of the first that cannot be read.
asio::awaitable<k8s::Result<std::optional<bool>>> has_gpu_claim(k8s::Reader* client, std::string ns,
                                                                std::vector<std::string> names,
                                                                k8s::CallOptions limits) {
  for (std::string& name : names) {
    if (name.empty()) co_return std::nullopt;
    k8s::ObjectKey key{ns, std::move(name)};
    const std::string shown = key.name;
    const k8s::Result<std::string> json = co_await client->get(resources::resource_claims, std::move(key), limits);
    // It stays while a pod runs with it. A pod that waits for it might use a GPU one day.
    if (!json && json.error().reason == k8s::Reason::not_found) co_return std::nullopt;
    if (!json)
      co_return k8s::fail(json.error().reason,
                          fmt::format("ResourceClaim {}: {}", shown,
                                      explain_error(json.error(), "get", resources::resource_claims, ns)));
    const k8s::Result<std::optional<bool>> of_gpu = project_gpu_claim(*json);
    if (!of_gpu || of_gpu->value_or(true)) co_return of_gpu;
  }
  co_return false;
}

// Pods whose claims are all for other devices leave `found`. What the claims of each pod are for is added to `known`.
asio::awaitable<void> leave_out_other_claims(k8s::Reader* client, k8s::CallOptions limits, ClaimsOfPods claiming,
                                             std::size_t* reads_left, std::map<std::string, bool>* known,
                                             NodeConsumers* found, std::string* unread) {
  for (const Pod& pod : found->pods) {
    const auto its = claiming.find(std::string(pod.meta.uid));
    if (its == claiming.end()) continue;
    const std::size_t reads = its->second.size();
    if (reads > *reads_left) continue;
    *reads_left -= reads;
    const k8s::Result<std::optional<bool>> of_gpu =
        co_await has_gpu_claim(client, std::string(pod.meta.ns.view()), std::move(its->second), limits);
    if (of_gpu && *of_gpu) known->emplace(its->first, **of_gpu);
    if (!of_gpu && unread->empty())
      *unread = fmt::format("pod {} might use a GPU by a claim that cannot be read: {}", k8s::to_string(pod.meta.key()),
                            of_gpu.error().message);
  }
  std::erase_if(found->pods, [&](const Pod& pod) {
    const auto its = known->find(std::string(pod.meta.uid));
    return its != known->end() && !its->second;
  });
}

}  // namespace

asio::awaitable<k8s::Result<NodeConsumers>> read_consumers(k8s::Reader* client, k8s::Clock* clock, const World* world,
                                                           const PlannerSettings* settings, std::string node,
                                                           k8s::CallOptions limits, KnownClaims known,
                                                           std::string* unread) {
  NodeConsumers found;
  found.listed_at = clock->monotonic();
  k8s::ListOptions options;
  options.field_selector = k8s::FieldSelector::equals("spec.nodeName", node);
  options.call = limits;
  struct Room {
    std::size_t pods = most_bytes(TenantFed::node_consumers);
    std::size_t rejected = pods;
  };
  Room left;
  std::string beyond;  // A pod for which there was no room.
  if (!known) known = std::make_shared<std::map<std::string, bool>>();
  std::map<std::string, bool> still;  // Of `known`.
  ClaimsOfPods claiming;
  const std::function<void()> restart = [&] {
    found.pods.clear();
    found.rejected.clear();
    left = {};
    beyond.clear();
    still.clear();
    claiming.clear();
  };
  const std::function<void(Pod, std::string_view)> take = [&](Pod pod, std::string_view json) {
    const bool rejected = is_rejected(pod, *settings);
    if (!rejected && !is_gpu_consumer(pod, *world)) return;
    const std::string uid(pod.meta.uid);
    const bool by_claims = !rejected && pod.dra_gpu_claim && !uses_gpus_without_claims(pod, *world);
    const auto its = by_claims ? known->find(uid) : known->end();
    if (its != known->end()) still.insert(*its);
    if (its != known->end() && !its->second) return;
    std::vector<Pod>& kept = rejected ? found.rejected : found.pods;
    std::size_t& room = rejected ? left.rejected : left.pods;
    drop_other_labels(pod);
    const std::size_t bytes = memory_of(pod);
    const bool has_place = bytes <= room && (!rejected || kept.size() < kMostRejected);
    if (!has_place && !rejected) beyond = k8s::to_string(pod.meta.key());
    if (!has_place) return;
    room -= bytes;
    kept.push_back(std::move(pod));
    if (!by_claims || its != known->end()) return;
    if (auto names = project_claims_of_pod(json)) claiming[uid] = *std::move(names);
  };
  const k8s::Result<std::string> unreadable = co_await list_pods(client, options, restart, take);
  if (!unreadable) co_return std::unexpected(unreadable.error());
  if (!unreadable->empty()) {
    found.unknown = fmt::format("not all pods of node {} can be read: {}", node, *unreadable);
  } else if (!beyond.empty()) {
    found.unknown =
        fmt::format("the pods of node {} that use GPUs are more than can be kept ({} KiB), {} among them: delete some",
                    node, most_bytes(TenantFed::node_consumers) / 1024, shown_value(beyond));
  }
  *known = std::move(still);
  std::size_t reads_left = kMostClaims;
  co_await leave_out_other_claims(client, limits, std::move(claiming), &reads_left, known.get(), &found,
                                  unread != nullptr ? unread : &found.unknown);
  co_return found;
}

asio::awaitable<std::string> leave_out_other_claims(k8s::Reader* client, const World* world, ClaimsOfPods claims,
                                                    std::map<std::string, NodeConsumers>* consumers) {
  std::size_t reads_left = kMostClaims;
  std::string unread;
  for (auto& [node, found] : *consumers) {
    ClaimsOfPods claiming;
    for (const Pod& pod : found.pods) {
      const auto its = claims.find(std::string(pod.meta.uid));
      if (its != claims.end() && !uses_gpus_without_claims(pod, *world)) claiming.insert(*its);
    }
    std::map<std::string, bool> known;
    co_await leave_out_other_claims(client, k8s::CallOptions(), std::move(claiming), &reads_left, &known, &found,
                                    &found.unknown);
    if (found.unknown.empty()) continue;
    unread = found.unknown;
    reads_left = 0;  // The others would say the same.
  }
  co_return unread;
}

NodeConsumersReader::NodeConsumersReader(Parts parts)
    : parts_(std::move(parts)), outages_(parts_.clock, parts_.log), lists_ended_(parts_.clock), readers_(parts_.clock) {
  // The next refresh() throws it.
  readers_.on_failure([this](const std::string&) { parts_.wake(Duration::zero()); });
}

k8s::CallOptions NodeConsumersReader::patience() const {
  k8s::CallOptions out;
  out.deadline = parts_.clock->monotonic() + kLongest;
  return out;
}

asio::awaitable<k8s::Result<NodeConsumers>> NodeConsumersReader::read_with_jobs(std::string node) {
  const k8s::CallOptions limits = patience();
  KnownClaims& known = known_claims_[node];
  if (!known) known = std::make_shared<std::map<std::string, bool>>();
  k8s::Result<NodeConsumers> found =
      co_await read_consumers(parts_.client, parts_.clock, parts_.world, parts_.settings, node, limits, known);
  if (!found) co_return found;
  for (const Job& job : jobs_to_follow(node, found->pods)) {
    k8s::Result<std::set<std::string>> members = co_await nodes_of_job(job);
    if (!members) co_return std::unexpected(members.error());
    found->jobs[job.id()] = *std::move(members);
  }
  co_return found;
}

// Under `workloads: Evict` members of one job leave together: where else are they?
std::vector<Job> NodeConsumersReader::jobs_to_follow(const std::string& node, const std::vector<Pod>& pods) const {
  const Node* shown = parts_.world->nodes.find(node);
  if (shown == nullptr) return {};
  const SharingPolicy& policy = parts_.index->impl().policy_of(*parts_.world, *shown);
  if (policy.rollout.workloads != WorkloadMode::evict) return {};
  std::map<std::string, Job> jobs;
  for (const Pod& pod : pods)
    if (auto job = job_of(pod)) jobs.try_emplace(job->id(), *job);
  std::vector<Job> out;
  for (auto& [id, job] : jobs) out.push_back(std::move(job));
  return out;
}

// One list for a job and half a minute, however many of its nodes ask.
asio::awaitable<k8s::Result<std::set<std::string>>> NodeConsumersReader::nodes_of_job(Job job) {
  const std::string id = job.id();
  const k8s::MonoTime now = parts_.clock->monotonic();
  std::erase_if(jobs_, [&](const auto& entry) { return now - entry.second.listed_at > kJobsAge; });
  if (auto known = jobs_.find(id); known != jobs_.end()) co_return known->second.nodes;
  JobNodes found{now, {}};
  k8s::ListOptions options;
  options.ns = job.ns;
  if (job.by_label) options.label_selector.match_labels[job.key] = job.value;
  options.call = patience();
  const std::function<void()> restart = [&] { found.nodes.clear(); };
  const std::function<void(Pod, std::string_view)> take = [&](const Pod& pod, std::string_view) {
    const auto its = job_of(pod);
    const bool member = its && its->id() == id && !pod.node_name.empty() && is_gpu_consumer(pod, *parts_.world);
    if (member) found.nodes.insert(std::string(pod.node_name.view()));
  };
  const k8s::Result<std::string> unreadable = co_await list_pods(parts_.client, options, restart, take);
  if (!unreadable) co_return std::unexpected(unreadable.error());
  if (!unreadable->empty())
    co_return k8s::fail(k8s::Reason::decode, fmt::format("not all pods of job {} can be read: {}", id, *unreadable));
  jobs_[id] = found;
  co_return found.nodes;
}

void NodeConsumersReader::note_evictions(const Execution& execution) {
  for (const auto& [node, answers] : execution.evictions) {
    auto listing = listings_.find(node);
    if (listing == listings_.end()) continue;
    for (const auto& [uid, answer] : answers) {
      listing->second.refused.erase(uid);
      listing->second.forbidden.erase(uid);
      if (!answer.text.empty()) {
        (answer.forbidden ? listing->second.forbidden : listing->second.refused)[uid] = answer.text;
        continue;
      }
      for (Pod& pod : listing->second.pods)
        if (pod.meta.uid == uid && !pod.meta.deletion_timestamp) pod.meta.deletion_timestamp = parts_.clock->now();
    }
  }
}

asio::awaitable<void> NodeConsumersReader::work(std::shared_ptr<Run> run) {
  const k8s::AtEnd leaves([run] { --run->workers; });
  // What is left behind of a run is the next one's to list.
  while (!run->nodes.empty() && !stopping_ && !run->left) {
    std::string node = std::move(run->nodes.back());
    run->nodes.pop_back();
    co_await list_node(run, std::move(node));
  }
}

asio::awaitable<void> NodeConsumersReader::list_node(std::shared_ptr<Run> run, std::string node) {
  being_listed_.insert(node);
  const k8s::AtEnd ends([this, node] {
    being_listed_.erase(node);
    lists_ended_.note();
  });
  k8s::Result<NodeConsumers> found = co_await read_with_jobs(node);
  if (found)
    note_listed(node, *std::move(found));
  else
    note_failed(node, found.error());
  run->any_ended = true;
  if (run->left && !stopping_) parts_.wake(Duration::zero());
}

void NodeConsumersReader::note_listed(const std::string& node, NodeConsumers found) {
  outages_.worked(kListFailed, "node " + node);
  failures_.erase(node);
  keep_answers(listings_[node], found);
  listings_[node] = std::move(found);
}

// Nothing is known of the present: the node counts as in use, and is listed again after a while.
void NodeConsumersReader::note_failed(const std::string& node, const k8s::Error& error) {
  outages_.failed(kListFailed, "node " + node, error);
  Failures& failures = failures_[node];
  failures.next_look = parts_.clock->monotonic() + kBackoff.after(failures.count++);
  NodeConsumers& former = listings_[node];
  former.failed = true;
  former.unknown = fmt::format("its pods cannot be listed: {}", error.message);
}

asio::awaitable<bool> NodeConsumersReader::refresh(std::set<std::string> nodes) {
  const k8s::MonoTime now = parts_.clock->monotonic();
  auto run = std::make_shared<Run>();
  std::erase_if(listings_, [&](const auto& entry) {
    return !nodes.contains(entry.first) && now - entry.second.listed_at > kListingKept;
  });
  const auto is_forgotten = [&](const auto& entry) { return !listings_.contains(entry.first); };
  std::erase_if(failures_, is_forgotten);
  std::erase_if(known_claims_, is_forgotten);
  for (const std::string& node : nodes) {
    auto it = listings_.find(node);
    const bool fresh = it != listings_.end() && now - it->second.listed_at < kListingAge;
    const auto failed = failures_.find(node);
    if (failed != failures_.end() && now < failed->second.next_look)
      parts_.wake(failed->second.next_look - now);
    else if (fresh)
      parts_.wake(kListingAge);
    else if (!being_listed_.contains(node))
      run->nodes.push_back(node);
  }
  run->workers = std::min(kReaders, run->nodes.size());
  for (std::size_t i = run->workers; i > 0; --i) readers_.spawn(parts_.executor, work(run));
  bool one_ended = true;
  while (run->workers > 0 && one_ended) one_ended = co_await lists_ended_.one_more(kPatience);
  run->left = true;
  if (!readers_.failure().empty()) throw std::runtime_error(readers_.failure());
  co_return run->any_ended;
}

}  // namespace gso
