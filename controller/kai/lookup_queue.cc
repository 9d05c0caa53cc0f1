// The queue of questions, and the few workers that ask them.
#include "controller/kai/lookup_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {
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
  Asked out;
  out.question = std::move(question);
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
  k8s::Result<bool> news = false;
  if (question.kind == Question::Kind::group) {
    news = co_await ask_group(question.key.name);
  } else if (question.kind == Question::Kind::pod) {
    news = co_await ask_pod(question.key);
  } else {
    news = co_await ask_small(question);
  }
  co_return news;
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
