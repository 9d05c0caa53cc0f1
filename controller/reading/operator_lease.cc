#include "controller/reading/operator_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/reading/reads.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace {
constexpr k8s::Duration kPoll = std::chrono::milliseconds(500);
constexpr k8s::Duration kGlance = std::chrono::seconds(5);

// Why nobody can hold it; empty where there is a holder.
std::string problem_of(const std::optional<LeaseRecord>& lease) {
  if (!lease) return "the Lease has no spec";
  return lease->holder.empty() ? "the Lease has no holder" : "";
}

// At most an hour, as for --lease-duration: a Lease must not call its holder alive forever.
k8s::Duration duration_of(const LeaseRecord& lease) {
  constexpr std::int64_t kUsual = 15;  // Seconds, where the Lease does not say.
  constexpr std::int64_t kMost = 3600;
  return std::chrono::seconds(lease.duration_seconds > 0 ? std::min(lease.duration_seconds, kMost) : kUsual);
}

std::optional<k8s::WallTime> renewed_at(const std::optional<LeaseRecord>& lease) {
  return lease ? k8s::parse_rfc3339(lease->renew_time) : std::nullopt;
}
}  // namespace

bool looks_fresh(const std::optional<LeaseRecord>& lease, k8s::WallTime now) {
  const std::optional<k8s::WallTime> renewed = renewed_at(lease);
  return problem_of(lease).empty() && renewed && now - *renewed <= duration_of(*lease);
}

void LeaseRenewals::see(const std::string& lease_json, k8s::MonoTime now) {
  std::optional<LeaseRecord> lease = read_lease(lease_json);
  if (seen_ && lease == last_) return;
  renewed_ = seen_ && problem_of(lease).empty();
  seen_ = true;
  last_ = std::move(lease);
  changed_at_ = now;
}

k8s::MonoTime LeaseRenewals::expires() const {
  return problem_of(last_).empty() ? changed_at_ + duration_of(*last_) : k8s::MonoTime{};
}

std::string LeaseRenewals::why() const {
  if (const std::string problem = problem_of(last_); !problem.empty()) return problem;
  // Without the fraction of the second.
  const std::string renewed = last_->renew_time.empty() ? "ever" : last_->renew_time;
  const std::size_t point = renewed.find('.');
  const bool whole = point == std::string::npos;
  return fmt::format("{} has not renewed the Lease since {}{}", last_->holder, renewed.substr(0, point),
                     whole ? "" : "Z");
}

std::string NoOperator::text() const {
  const std::string name = k8s::to_string(lease);
  if (!was_running) {
    return fmt::format(
        "No operator was ever seen in namespace {}: Lease {} does not exist. Whether one runs elsewhere is unknown: if "
        "it does, name its namespace with --namespace",
        lease.ns, name);
  }
  return fmt::format(
      "No operator is running: {} (Lease {}). No node is changed until an operator runs, and statuses are those that "
      "the last one wrote. Run: kubectl get deployments,pods --namespace {}",
      why, name, lease.ns);
}

std::optional<NoOperator> no_operator_among(const std::vector<std::string>& leases, const k8s::ObjectKey& lease) {
  // One list of Leases is of one moment. Their holders' clocks can differ.
  constexpr k8s::Duration kSlack = std::chrono::minutes(1);
  std::optional<k8s::WallTime> newest;
  std::optional<LeaseRecord> operator_lease;
  for (const std::string& text : leases) {
    std::optional<LeaseRecord> read = read_lease(text);
    const std::optional<k8s::WallTime> renewed = renewed_at(read);
    if (renewed) newest = std::max(newest.value_or(*renewed), *renewed);
    const auto metadata = object_at(nlohmann::json::parse(text, nullptr, false), "metadata");
    if (text_at(metadata, "namespace") == lease.ns && text_at(metadata, "name") == lease.name)
      operator_lease = std::move(read);
  }
  const std::optional<k8s::WallTime> renewed = renewed_at(operator_lease);
  if (!renewed || !newest || !problem_of(operator_lease).empty()) return std::nullopt;
  if (*newest - *renewed <= duration_of(*operator_lease) + kSlack) return std::nullopt;
  return NoOperator{lease,
                    fmt::format("{} had last renewed the Lease at {}, and the newest of the Leases that were read was "
                                "renewed at {}",
                                operator_lease->holder, k8s::format_time(*renewed), k8s::format_time(*newest)),
                    true};
}

boost::asio::awaitable<OperatorPresence> find_operator(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey lease,
                                                       std::vector<std::string>* incomplete) {
  OperatorPresence out;
  const k8s::MonoTime end = clock->monotonic() + kGlance;
  LeaseRenewals renewals;
  for (;;) {
    const k8s::CallOptions call;
    const k8s::Result<std::string> read = co_await client->get(resources::leases, lease, call);
    if (!read && read.error().reason != k8s::Reason::not_found) {
      out.unread = read.error();
      append_unique(*incomplete,
                    fmt::format("whether an operator runs is unknown: Lease {} was not read: {}", k8s::to_string(lease),
                                explain_error(read.error(), "get", resources::leases, lease.ns)));
      co_return out;
    }
    if (!read) {
      out.none = NoOperator{lease, fmt::format("Lease {} does not exist", k8s::to_string(lease)), false};
      co_return out;
    }
    renewals.see(*read, clock->monotonic());
    if (renewals.renewed() || looks_fresh(renewals.last(), clock->now())) {
      out.running = k8s::to_string(lease);
      co_return out;
    }
    if (!problem_of(renewals.last()).empty() || clock->monotonic() >= end) {
      out.none = NoOperator{lease, renewals.why(), true};
      co_return out;
    }
    co_await clock->sleep_for(kPoll);
  }
}

}  // namespace gso
