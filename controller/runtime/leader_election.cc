// The elector's loop and the Lease's JSON.
#include "controller/runtime/leader_election.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kObserveMode = "Observe";
constexpr double kJitterFactor = 1.2;  // client-go's JitterFactor.

LeaseRecord record_of(const Json& lease) {
  const Json spec = object_at(lease, "spec");
  return {.holder = text_at(spec, "holderIdentity"),
          .duration_seconds = number_at(spec, "leaseDurationSeconds"),
          .acquire_time = text_at(spec, "acquireTime"),
          .renew_time = text_at(spec, "renewTime"),
          .transitions = number_at(spec, "leaseTransitions")};
}

// A create that is answered by 404: the namespace does not exist.
k8s::Error without_namespace(const k8s::ObjectKey& lease, k8s::Error error) {
  error.message = fmt::format(
      "Lease {}/{} could not be created: namespace {} does not exist. Nothing is planned or written. Create the "
      "namespace, or set --namespace to the operator's namespace ({})",
      lease.ns, lease.name, lease.ns, error.message);
  return error;
}

}  // namespace

std::optional<LeaseRecord> read_lease(std::string_view json) {
  const Json lease = Json::parse(json, nullptr, false);
  return object_at(lease, "spec").empty() ? std::nullopt : std::optional(record_of(lease));
}

k8s::Result<void> validate(const LeaderElectionOptions& options) {
  const auto text = [](Duration d) { return k8s::format_go_duration(d); };
  const auto wrong = [](std::string what) { return k8s::fail(k8s::Reason::invalid, std::move(what)); };
  if (options.identity.empty()) return wrong("leader election: the identity is empty");
  if (options.lease.ns.empty() || options.lease.name.empty())
    return wrong("leader election: the lease needs a namespace and a name");
  if (options.retry_period <= Duration::zero())
    return wrong(fmt::format("retry-period {} must be greater than 0", text(options.retry_period)));
  if (options.lease_duration < std::chrono::seconds(1))
    return wrong(fmt::format("lease-duration {} must be at least 1s", text(options.lease_duration)));
  // The Lease stores whole seconds: a standby that reads a shorter duration would lead at the same time.
  if (options.lease_duration % std::chrono::seconds(1) != Duration::zero())
    return wrong(fmt::format("lease-duration {} must be whole seconds", text(options.lease_duration)));
  if (options.lease_duration <= options.renew_deadline) {
    return wrong(fmt::format("lease-duration {} must be greater than renew-deadline {}", text(options.lease_duration),
                             text(options.renew_deadline)));
  }
  const auto least = std::chrono::duration_cast<Duration>(options.retry_period * kJitterFactor);
  if (options.renew_deadline <= least) {
    return wrong(fmt::format("renew-deadline {} must be greater than retry-period {} times {}",
                             text(options.renew_deadline), text(options.retry_period), kJitterFactor));
  }
  return {};
}

LeaderElector::LeaderElector(k8s::ApiClient* client, k8s::Clock* clock, LeaderElectionOptions options,
                             LeaderElectionEvents events)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      events_(std::move(events)),
      jitter_(options_.seed),
      wake_(clock->make_signal()),
      ended_(clock->make_signal()) {}

bool LeaderElector::may_write() const {
  return leading_ && clock_->monotonic() < last_renew_ + options_.renew_deadline;
}

void LeaderElector::stop() {
  stopping_ = true;
  wake_->notify();
}

void LeaderElector::set_leading(bool leading) {
  if (leading_ == leading) return;
  leading_ = leading;
  if (leading)
    events_.started_leading();
  else
    events_.stopped_leading();
}

void LeaderElector::note_failure(k8s::Error error) {
  problem_ = std::move(error);
  events_.failed(*problem_);
}

void LeaderElector::note_success() {
  if (!problem_) return;
  problem_.reset();
  events_.recovered();
}

boost::asio::awaitable<void> LeaderElector::run() {
  running_ = true;
  while (!stopping_) {
    const bool held = co_await try_acquire_or_renew();
    if (stopping_) break;
    if (held) {
      set_leading(true);
    } else if (leading_ && (!holds_record() || !may_write())) {
      // Somebody else took it, or the deadline passed: never wait for a better answer.
      set_leading(false);
      continue;
    }
    MonoTime next = clock_->monotonic() +
                    (leading_ ? options_.retry_period : jitter_(options_.retry_period, 1.0, 1.0 + kJitterFactor));
    if (leading_) next = std::min(next, last_renew_ + options_.renew_deadline);
    co_await wake_->wait_until(next);
  }
  running_ = false;
  ended_->notify();
}

MonoTime LeaderElector::attempt_deadline() const {
  const MonoTime soon = clock_->monotonic() + options_.renew_deadline / 2;
  return leading_ ? std::min(soon, last_renew_ + options_.renew_deadline) : soon;
}

bool LeaderElector::record_expired() const {
  const Duration duration =
      observed_.duration_seconds > 0 ? std::chrono::seconds(observed_.duration_seconds) : options_.lease_duration;
  return clock_->monotonic() >= observed_at_ + duration;
}

boost::asio::awaitable<bool> LeaderElector::try_acquire_or_renew() {
  const MonoTime begun = clock_->monotonic();
  if (leading_ && fresh_ && holds_record()) {
    const bool renewed = co_await write(begun, false);
    if (renewed || fresh_) co_return renewed;  // Still fresh: no answer, the next attempt may send the same.
  }
  k8s::Result<void> known = co_await read();
  if (!known) {
    if (known.error().reason != k8s::Reason::not_found) {
      note_failure(known.error());
      co_return false;
    }
    exists_ = false;
    const MonoTime sent = clock_->monotonic();
    co_return co_await write(sent, true);
  }
  if (!observed_.holder.empty() && !holds_record() && !record_expired()) {
    note_success();
    co_return false;
  }
  const MonoTime sent = clock_->monotonic();
  co_return co_await write(sent, false);
}

boost::asio::awaitable<k8s::Result<void>> LeaderElector::read() {
  k8s::CallOptions call;
  call.deadline = attempt_deadline();
  call.channel = k8s::Channel::lease;
  k8s::Result<std::string> answer = co_await client_->get(resources::leases, options_.lease, call);
  if (!answer) co_return std::unexpected(answer.error());
  const std::string seen = k8s::read_resource_version(observed_json_);
  observe(*answer);
  if (k8s::older(k8s::read_resource_version(observed_json_), seen)) events_.went_back();
  co_return k8s::Result<void>{};
}

void LeaderElector::observe(const std::string& json) {
  const Json lease = Json::parse(json, nullptr, false);
  if (!lease.is_object()) return;  // The client has checked the answer; an unreadable one changes nothing.
  observed_json_ = json;
  exists_ = true;
  fresh_ = true;
  LeaseRecord record = record_of(lease);
  if (record != observed_ || observed_at_ == MonoTime{}) {
    observed_ = std::move(record);
    observed_at_ = clock_->monotonic();
  }
  if (!observed_.holder.empty() && observed_.holder != reported_leader_) {
    reported_leader_ = observed_.holder;
    events_.new_leader(reported_leader_);
  }
}

std::string LeaderElector::next_record(bool releases) const {
  Json lease = exists_ ? Json::parse(observed_json_, nullptr, false) : Json::object();
  if (!lease.is_object()) lease = Json::object();
  lease["apiVersion"] = "coordination.k8s.io/v1";
  lease["kind"] = "Lease";
  lease["metadata"]["name"] = options_.lease.name;
  lease["metadata"]["namespace"] = options_.lease.ns;
  lease["metadata"].erase("managedFields");
  Json& spec = lease["spec"];
  const std::string now = k8s::format_micro_time(clock_->now());
  const bool held = exists_ && holds_record();
  spec["holderIdentity"] = releases ? "" : options_.identity;
  spec["leaseDurationSeconds"] =
      releases ? 1 : std::chrono::duration_cast<std::chrono::seconds>(options_.lease_duration).count();
  spec["renewTime"] = now;
  if (releases || !held || observed_.acquire_time.empty()) spec["acquireTime"] = now;
  spec["leaseTransitions"] = exists_ && !held ? observed_.transitions + 1 : observed_.transitions;
  Json& metadata = lease["metadata"];
  if (options_.only_observes)
    metadata["annotations"][std::string(kMaxModeAnnotation)] = kObserveMode;
  else if (metadata.contains("annotations"))
    metadata["annotations"].erase(std::string(kMaxModeAnnotation));
  return lease.dump();
}

bool LeaderElector::says_observe() const {
  const Json lease = exists_ ? Json::parse(observed_json_, nullptr, false) : Json();
  const Json annotations = object_at(object_at(lease, "metadata"), "annotations");
  return text_at(annotations, kMaxModeAnnotation) == kObserveMode;
}

boost::asio::awaitable<bool> LeaderElector::write(MonoTime begun, bool create) {
  const bool takes_over = !create && !holds_record();
  const bool after_observer = takes_over && says_observe();
  const std::string body = next_record();
  k8s::WriteOptions options;
  options.deadline = attempt_deadline();
  options.channel = k8s::Channel::lease;
  k8s::Result<std::string> answer = k8s::fail(k8s::Reason::cancelled, "");
  if (create)
    answer = co_await client_->create(resources::leases, options_.lease.ns, body, options);
  else
    answer = co_await client_->update(resources::leases, options_.lease, body, options);
  if (answer) {
    if (takes_over) follows_observer_ = after_observer;
    observe(*answer);
    last_renew_ = begun;
    note_success();
    events_.written();
    co_return true;
  }
  const k8s::Reason reason = answer.error().reason;
  // A conflict means that the Lease has changed; so can a write whose answer was lost.
  if (reason != k8s::Reason::unavailable && reason != k8s::Reason::too_many_requests) fresh_ = false;
  // Losing the race for a free lease is how elections go, not a failure.
  if (reason != k8s::Reason::conflict && reason != k8s::Reason::already_exists) {
    note_failure(create && reason == k8s::Reason::not_found ? without_namespace(options_.lease, answer.error())
                                                            : answer.error());
  }
  co_return false;
}

boost::asio::awaitable<void> LeaderElector::release() {
  // A renewal on its way and the release would carry the same resourceVersion.
  const MonoTime patience = clock_->monotonic() + options_.renew_deadline / 2;
  while (running_ && clock_->monotonic() < patience) co_await ended_->wait_until(patience);
  if (!leading_ || !holds_record() || !may_write()) {
    set_leading(false);
    co_return;
  }
  set_leading(false);
  const std::string body = next_record(true);
  k8s::WriteOptions options;
  options.deadline = clock_->monotonic() + options_.renew_deadline / 2;
  options.channel = k8s::Channel::lease;
  k8s::Result<std::string> answer = co_await client_->update(resources::leases, options_.lease, body, options);
  if (answer)
    events_.written();
  else
    events_.failed(answer.error());
}

}  // namespace gso
