#include "controller/kai/kai_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ranges>
#include <utility>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

namespace {

// Time limit of one lookup, and of all reads before a deletion together: a deletion that waits longer is judged again.
constexpr k8s::Duration kPatience = std::chrono::seconds(10);
// Of a consumer's ConfigMap, which its tenant can write. KAI names the UUIDs of a machine's GPUs, and one owner.
constexpr std::size_t kMostDevices = 1024;
constexpr std::size_t kMostOwners = 4;
// Of those that wait, for what is said about them.
constexpr std::size_t kMostWaiting = 1024;

k8s::LabelSelector multi_labelled(const std::string& group) {
  k8s::LabelSelector out;
  out.match_expressions.push_back({std::string(kai::kGroupPrefix) + group, k8s::LabelOperator::exists, {}});
  return out;
}

}  // namespace

k8s::CallOptions KaiReader::patience() const {
  k8s::CallOptions out;
  out.deadline = clock_->monotonic() + kPatience;
  return out;
}

// A pod that cannot be read may be a live consumer: it fails the whole list.
boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> KaiReader::list_pods(k8s::LabelSelector selector,
                                                                              k8s::CallOptions limits) {
  std::vector<KaiPod> found;
  std::size_t room = most_bytes(TenantFed::group_pods);
  k8s::ListOptions options;
  options.label_selector = std::move(selector);
  options.call = limits;
  k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.clear();
      room = most_bytes(TenantFed::group_pods);
      return {};
    }
    k8s::Result<KaiPod> pod = project_kai_pod(*json);
    if (!pod) return std::unexpected(pod.error());
    // A group shares a GPU or a few.
    const std::size_t bytes = memory_of(*pod);
    if (bytes > room) {
      return k8s::fail(k8s::Reason::too_large,
                       fmt::format("more than {} pods have the label of one GPU group", found.size()));
    }
    room -= bytes;
    found.push_back(*std::move(pod));
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(resources::pods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return found;
}

boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> KaiReader::multi_device_pods(std::string group,
                                                                                      k8s::CallOptions limits) {
  const k8s::LabelSelector selector = multi_labelled(group);
  co_return co_await list_pods(selector, limits);
}

// A list by name: one verb less to grant in every namespace than a GET.
boost::asio::awaitable<k8s::Result<bool>> KaiReader::is_pod_alive(k8s::ObjectKey pod, k8s::CallOptions limits) {
  bool alive = false;
  k8s::ListOptions options;
  options.ns = pod.ns;
  options.field_selector = k8s::FieldSelector::equals("metadata.name", pod.name);
  options.call = limits;
  k8s::ItemFunction sink([&alive](std::optional<std::string_view> json) -> k8s::Result<void> {
    alive = false;
    if (!json) return {};
    const k8s::Result<KaiPod> found = project_kai_pod(*json);
    if (!found) return std::unexpected(found.error());
    alive = is_alive(*found);
    return {};
  });
  const k8s::Result<std::string> listed = co_await client_->list(resources::pods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return alive;
}

// Forbidden or gone is an answer: there is no evidence.
boost::asio::awaitable<k8s::Result<LookupResults::Devices>> KaiReader::devices_in(k8s::ObjectKey config_map,
                                                                                  k8s::CallOptions limits) {
  LookupResults::Devices out;
  out.at = clock_->monotonic();
  const k8s::Result<std::string> read = co_await client_->get(resources::config_maps, config_map, limits);
  if (!read) {
    const bool none = read.error().reason == k8s::Reason::not_found || read.error().reason == k8s::Reason::forbidden;
    if (!none) co_return std::unexpected(read.error());
    co_return out;
  }
  const k8s::Result<ConfigMap> found = project_configmap(*read);
  if (!found) co_return std::unexpected(found.error());
  const auto devices = key_text(&*found, kai::kVisibleDevices);
  if (!devices) co_return out;
  out.known = true;
  out.devices = first_bytes(*devices, kMostDevices);
  for (const k8s::OwnerReference& owner : found->meta.owners | std::views::take(kMostOwners))
    out.owners.push_back(owner.uid);
  co_return out;
}

// From the API server's cache: it decides nothing.
boost::asio::awaitable<k8s::Result<LookupResults::Waiting>> KaiReader::waiting_pods(k8s::CallOptions limits) {
  LookupResults::Waiting out;
  out.at = clock_->monotonic();
  std::size_t room = most_bytes(TenantFed::waiting_pods);
  k8s::ListOptions options;
  options.field_selector = k8s::FieldSelector::equals("spec.nodeName", "");
  options.resource_version = "0";
  options.call = limits;
  const std::string scaling = view_kai(world_->kai, *settings_).scaling;
  const auto take = [&](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      out.pods.clear();
      room = most_bytes(TenantFed::waiting_pods);
      return {};
    }
    if (out.pods.size() >= kMostWaiting) return {};
    k8s::Result<Pod> pod = project_pod(*json);
    if (!pod) return {};  // Another list's business.
    const bool fraction =
        pod->meta.annotations.contains(kai::kFraction) || pod->meta.annotations.contains(kai::kMemory);
    const bool waits = pod->phase.empty() || pod->phase == "Pending";
    if (!waits || (!fraction && pod->meta.ns.view() != scaling)) return {};
    k8s::Result<KaiPod> for_kai = project_kai_pod(*json);
    if (!for_kai) return {};
    const std::size_t bytes = memory_of(*pod) + memory_of(*for_kai);
    if (bytes > room) return {};
    room -= bytes;
    out.pods.push_back({*std::move(pod), std::move(for_kai->tolerations)});
    return {};
  };
  k8s::ItemFunction sink(take, [](std::string_view /*metadata*/, const k8s::Error& /*why*/) {});
  const k8s::Result<std::string> listed = co_await client_->list(resources::pods, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return out;
}

// "Not found" is an answer: KAI runs no known leader election.
boost::asio::awaitable<k8s::Result<LookupResults::Lease>> KaiReader::binder_lease(k8s::CallOptions limits) {
  LookupResults::Lease out;
  out.at = clock_->monotonic();
  const KaiView view = view_kai(world_->kai, *settings_);
  const k8s::ObjectKey key{view.ns, std::string(kai::kBinderLease)};
  const k8s::Result<std::string> read = co_await client_->get(resources::leases, key, limits);
  if (!read && read.error().reason == k8s::Reason::not_found) co_return out;
  if (!read) co_return std::unexpected(read.error());
  k8s::Result<Lease> lease = project_lease(*read);
  if (!lease) co_return std::unexpected(lease.error());
  out.known = true;
  out.holder = std::move(lease->holder);
  out.acquired = lease->acquired;
  co_return out;
}

// --- The queue of questions, and the few workers that ask them.

namespace {

constexpr k8s::Duration kRetry = std::chrono::seconds(5);
// Many answers share a pass.
constexpr k8s::Duration kReportEvery = std::chrono::seconds(1);

bool any_alive(const LookupResults::Group& group) {
  return std::ranges::any_of(group.pods, is_alive);
}

}  // namespace

// The longer of what a slow server takes and what planners still use; what they want now is kept to compare with.
void LookupQueue::forget_old(const KaiWants& wants) {
  if (wants.empty()) return;  // The pass might have planned nothing; dropping the answers would repeat all lookups.
  const k8s::MonoTime now = parts_.clock->monotonic();
  const auto forget = [&](auto& answers, const auto& wanted) {
    std::erase_if(answers, [&](const auto& entry) {
      return now - entry.second.at > 5 * parts_.settings->sweep && !wanted.contains(entry.first);
    });
  };
  LookupResults& lookups = parts_.world->kai.lookups;
  forget(lookups.groups, wants.groups);
  forget(lookups.pods, wants.pods);
  forget(lookups.config_maps, wants.config_maps);
  std::erase_if(lookups.refusals, [&](const auto& entry) { return now - entry.second.at > std::chrono::hours(1); });
}

LookupQueue::Asked LookupQueue::rank(Question question) const {
  const LookupResults& lookups = parts_.world->kai.lookups;
  Asked out{.question = std::move(question)};
  const auto answered = [&](const auto& answers, const auto& key, const auto& keeps) {
    auto it = answers.find(key);
    out.rank = it == answers.end() ? Rank::first : keeps(it->second) ? Rank::keeping : Rank::deciding;
    if (it != answers.end()) out.answered = it->second.at;
  };
  switch (out.question.kind) {
    case Question::Kind::group:
      answered(lookups.groups, out.question.key.name, any_alive);
      break;
    case Question::Kind::pod:
      answered(lookups.pods, out.question.key, [](const LookupResults::Pod& pod) { return pod.alive; });
      break;
    case Question::Kind::config_map:
      answered(lookups.config_maps, out.question.key, [](const LookupResults::Devices& found) { return !found.known; });
      break;
    case Question::Kind::lease:
    case Question::Kind::waiting:
      break;
  }
  return out;
}

void LookupQueue::want(KaiWants wants) {
  forget_old(wants);
  queue_.clear();
  if (stopped_) return;
  const k8s::MonoTime now = parts_.clock->monotonic();
  std::erase_if(retry_at_, [&](const auto& entry) { return entry.second <= now; });
  const auto add = [&](Question question) {
    if (!under_way_.contains(question) && !retry_at_.contains(question)) queue_.push_back(rank(std::move(question)));
  };
  if (wants.binder_lease) add({Question::Kind::lease, {}});
  if (wants.waiting_pods) add({Question::Kind::waiting, {}});
  for (const std::string& group : wants.groups) add({Question::Kind::group, {"", group}});
  for (const k8s::ObjectKey& pod : wants.pods) add({Question::Kind::pod, pod});
  for (const k8s::ObjectKey& config_map : wants.config_maps) add({Question::Kind::config_map, config_map});
  std::ranges::sort(queue_);
  if (now - window_ >= parts_.settings->sweep) {
    window_ = now;
    renewals_ = 0;
  }
  if (workers_ == 0) reported_at_ = now;  // Report a few answers together, after the last one.
  for (std::size_t more = queue_.size(); more > 0 && workers_ < kAtOnce; --more) {
    ++workers_;
    parts_.tasks->spawn(parts_.executor, work());
  }
}

void LookupQueue::stop() {
  stopped_ = true;
  queue_.clear();
}

bool LookupQueue::busy() const {
  const bool waits = std::ranges::any_of(queue_, [](const Asked& asked) { return asked.rank == Rank::first; });
  return waits || std::ranges::any_of(under_way_, [](const auto& entry) { return entry.second == Rank::first; });
}

std::optional<LookupQueue::Asked> LookupQueue::take() {
  if (queue_.empty()) return std::nullopt;
  Asked next = queue_.front();
  if (next.rank == Rank::keeping && ++renewals_ > kRenewals) return std::nullopt;
  queue_.pop_front();
  return next;
}

boost::asio::awaitable<void> LookupQueue::work() {
  co_await boost::asio::post(boost::asio::use_awaitable);
  for (std::optional<Asked> next = take(); next; next = take()) {
    const Question question = next->question;
    under_way_[question] = next->rank;
    const k8s::Result<bool> news = co_await ask(question);
    under_way_.erase(question);
    if (news) {
      news_ = news_ || *news;
    } else {
      parts_.log->warning("KAI lookup failed",
                          {{"what", k8s::to_string(question.key)}, {"error", news.error().message}});
      retry_at_[question] = parts_.clock->monotonic() + kRetry;
      parts_.wake(kRetry);
    }
    report(workers_ == 1 && queue_.empty());
  }
  --workers_;
  report(workers_ == 0);
}

void LookupQueue::report(bool last) {
  const k8s::MonoTime now = parts_.clock->monotonic();
  if (!news_ || (!last && now - reported_at_ < kReportEvery)) return;
  news_ = false;
  reported_at_ = now;
  parts_.wake(k8s::Duration::zero());
}

// Planners still use the previous answer: an identical new one need not wake them.
bool LookupQueue::recent(k8s::MonoTime at) const {
  return parts_.clock->monotonic() - at < 2 * parts_.settings->sweep;
}

boost::asio::awaitable<k8s::Result<bool>> LookupQueue::ask(Question question) {
  if (question.kind == Question::Kind::group) co_return co_await ask_group(question.key.name);
  if (question.kind == Question::Kind::pod) co_return co_await ask_pod(question.key);
  co_return co_await ask_small(question);
}

boost::asio::awaitable<k8s::Result<bool>> LookupQueue::ask_group(std::string group) {
  LookupResults::Group answer;
  answer.at = parts_.clock->monotonic();
  const k8s::CallOptions limits = parts_.reads->patience();
  k8s::Result<std::vector<KaiPod>> pods = co_await parts_.reads->multi_device_pods(group, limits);
  if (!pods) co_return std::unexpected(pods.error());
  answer.pods = *std::move(pods);
  std::size_t bytes = 0;
  for (const KaiPod& pod : answer.pods) bytes += memory_of(pod);
  LookupResults& lookups = parts_.world->kai.lookups;
  std::erase_if(group_bytes_, [&](const auto& entry) { return !lookups.groups.contains(entry.first); });
  std::size_t kept = bytes;
  for (const auto& [name, of_other] : group_bytes_) kept += name == group ? 0 : of_other;
  if (kept > most_bytes(TenantFed::groups, parts_.world->nodes.size()))
    co_return k8s::fail(k8s::Reason::too_large, "the pods of all GPU groups together need too much memory");
  auto before = lookups.groups.find(group);
  const bool same =
      before != lookups.groups.end() && recent(before->second.at) && before->second.pods.empty() && answer.pods.empty();
  lookups.groups[group] = std::move(answer);
  group_bytes_[group] = bytes;
  co_return !same;
}

boost::asio::awaitable<k8s::Result<bool>> LookupQueue::ask_pod(k8s::ObjectKey pod) {
  LookupResults::Pod answer;
  answer.at = parts_.clock->monotonic();
  const k8s::CallOptions limits = parts_.reads->patience();
  const k8s::Result<bool> alive = co_await parts_.reads->is_pod_alive(pod, limits);
  if (!alive) co_return std::unexpected(alive.error());
  answer.alive = *alive;
  LookupResults& lookups = parts_.world->kai.lookups;
  auto before = lookups.pods.find(pod);
  const bool same = before != lookups.pods.end() && before->second.alive == answer.alive &&
                    (answer.alive || recent(before->second.at));
  lookups.pods[pod] = answer;
  co_return !same;
}

boost::asio::awaitable<k8s::Result<bool>> LookupQueue::ask_small(Question question) {
  LookupResults& lookups = parts_.world->kai.lookups;
  const k8s::CallOptions limits = parts_.reads->patience();
  if (question.kind == Question::Kind::config_map) {
    k8s::Result<LookupResults::Devices> devices = co_await parts_.reads->devices_in(question.key, limits);
    if (!devices) co_return std::unexpected(devices.error());
    lookups.config_maps[question.key] = *std::move(devices);
  } else if (question.kind == Question::Kind::waiting) {
    k8s::Result<LookupResults::Waiting> waiting = co_await parts_.reads->waiting_pods(limits);
    if (!waiting) co_return std::unexpected(waiting.error());
    lookups.waiting = *std::move(waiting);
  } else {
    k8s::Result<LookupResults::Lease> lease = co_await parts_.reads->binder_lease(limits);
    if (!lease) co_return std::unexpected(lease.error());
    lookups.binder_lease = *std::move(lease);
  }
  co_return true;
}

}  // namespace gso
