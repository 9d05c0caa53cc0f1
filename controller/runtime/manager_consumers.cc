// GPU consumers of single nodes, listed when a plan needs them, with the nodes of their jobs and the answers of
// PodDisruptionBudgets.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "controller/runtime/manager.h"
#include "reconcilers/cluster/consumers.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/jobs.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

// A node's consumers are not listed twice within this.
constexpr Duration kConsumersAge = std::chrono::milliseconds(200);
constexpr Duration kConsumersKept = std::chrono::minutes(5);
constexpr Duration kJobsAge = std::chrono::seconds(30);

}  // namespace

boost::asio::awaitable<k8s::Result<NodeConsumers>> Manager::consumers_of(std::string node) {
  NodeConsumers found;
  found.listed_at = clock_->now();
  k8s::ListOptions options;
  options.field_selector = k8s::FieldSelector::equals("spec.nodeName", node);
  options.call.deadline = clock_->monotonic() + std::chrono::seconds(15);
  k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.pods.clear();
      found.rejected.clear();
      return {};
    }
    k8s::Result<Pod> pod = project_pod(*json);
    if (!pod) return std::unexpected(pod.error());
    if (is_rejected(*pod, settings_)) {
      found.rejected.push_back(*std::move(pod));
    } else if (is_gpu_consumer(*pod, world_)) {
      found.pods.push_back(*std::move(pod));
    }
    return {};
  });
  const k8s::Gvr pods{"", "v1", "pods"};
  const k8s::Result<std::string> listed = co_await client_.list(pods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  for (const Job& job : jobs_to_follow(node, found.pods)) {
    k8s::Result<std::set<std::string>> members = co_await nodes_of_job(job);
    if (!members) co_return std::unexpected(members.error());
    found.jobs[job.id()] = *std::move(members);
  }
  co_return found;
}

// Under `workloads: Evict` members of one job leave together: where else are they?
std::vector<Job> Manager::jobs_to_follow(const std::string& node, const std::vector<Pod>& pods) const {
  const NodeAssessment* a = index_.assessment(node);
  if (a == nullptr) return {};
  const SharingPolicy& policy = index_.impl().policy(world_, a->policy.view());
  if (policy.rollout.workloads != WorkloadMode::evict) return {};
  std::map<std::string, Job> jobs;
  for (const Pod& pod : pods) {
    if (auto job = job_of(pod)) jobs.try_emplace(job->id(), *job);
  }
  std::vector<Job> out;
  for (auto& [id, job] : jobs) out.push_back(std::move(job));
  return out;
}

// One list for a job and half a minute, however many of its nodes ask.
boost::asio::awaitable<k8s::Result<std::set<std::string>>> Manager::nodes_of_job(Job job) {
  const std::string id = job.id();
  const k8s::WallTime now = clock_->now();
  std::erase_if(jobs_, [&](const auto& entry) { return now - entry.second.listed_at > kJobsAge; });
  if (auto known = jobs_.find(id); known != jobs_.end()) co_return known->second.nodes;
  JobNodes found{now, {}};
  k8s::ListOptions options;
  options.ns = job.ns;
  if (job.by_label) options.label_selector.match_labels[job.key] = job.value;
  options.call.deadline = clock_->monotonic() + std::chrono::seconds(15);
  k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.nodes.clear();
      return {};
    }
    k8s::Result<Pod> pod = project_pod(*json);
    if (!pod) return std::unexpected(pod.error());
    const auto its = job_of(*pod);
    const bool member = its && its->id() == id && !pod->node_name.empty() && is_gpu_consumer(*pod, world_);
    if (member) found.nodes.insert(std::string(pod->node_name.view()));
    return {};
  });
  const k8s::Gvr pods{"", "v1", "pods"};
  const k8s::Result<std::string> listed = co_await client_.list(pods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  jobs_[id] = found;
  co_return found.nodes;
}

// The answer to a pod's eviction is remembered while the pod exists. An evicted pod is ending, which only the next
// listing shows: until then the operator waits for it and does not evict it again.
void Manager::note_evictions(const Execution& execution) {
  for (const auto& [node, answers] : execution.evictions) {
    auto listing = consumers_.find(node);
    if (listing == consumers_.end()) continue;
    for (const auto& [uid, answer] : answers) {
      listing->second.refused.erase(uid);
      listing->second.forbidden.erase(uid);
      if (!answer.text.empty()) {
        (answer.forbidden ? listing->second.forbidden : listing->second.refused)[uid] = answer.text;
        continue;
      }
      for (Pod& pod : listing->second.pods) {
        if (pod.meta.uid == uid && !pod.meta.deletion_timestamp) pod.meta.deletion_timestamp = clock_->now();
      }
    }
  }
}

void Manager::keep_refusals(const NodeConsumers& before, NodeConsumers& found) {
  for (const Pod& pod : found.pods) {
    const std::string uid(pod.meta.uid);
    if (const auto answer = before.refused.find(uid); answer != before.refused.end()) found.refused.insert(*answer);
    if (const auto answer = before.forbidden.find(uid); answer != before.forbidden.end())
      found.forbidden.insert(*answer);
  }
}

boost::asio::awaitable<void> Manager::list_some(std::shared_ptr<ConsumerRun> run) {
  while (!run->nodes.empty() && !stopping_) {
    const std::string node = run->nodes.back();
    run->nodes.pop_back();
    k8s::Result<NodeConsumers> found = co_await consumers_of(node);
    if (found) {
      keep_refusals(consumers_[node], *found);
      consumers_[node] = *std::move(found);
      run->listed = true;
    } else {
      run->failed = true;
      log_->warning("Could not list the pods of a node", {{"node", node}, {"error", found.error().message}});
    }
  }
}

boost::asio::awaitable<bool> Manager::list_consumers(std::set<std::string> nodes) {
  const k8s::WallTime now = clock_->now();
  auto run = std::make_shared<ConsumerRun>();
  std::erase_if(consumers_, [&](const auto& entry) {
    return !nodes.contains(entry.first) && now - entry.second.listed_at > kConsumersKept;
  });
  for (const std::string& node : nodes) {
    auto it = consumers_.find(node);
    const bool fresh = it != consumers_.end() && now - it->second.listed_at < kConsumersAge;
    if (fresh) {
      wake(kConsumersAge);
    } else {
      run->nodes.push_back(node);
    }
  }
  TaskGroup readers(clock_);
  constexpr std::size_t kReaders = 8;
  for (std::size_t i = 0; i < std::min(kReaders, run->nodes.size()); ++i) readers.spawn(executor_, list_some(run));
  co_await readers.join();
  if (!readers.failure().empty()) throw std::runtime_error(readers.failure());
  if (run->failed) queue_.add_rate_limited(kFleet);
  co_return run->listed;
}

}  // namespace gso
