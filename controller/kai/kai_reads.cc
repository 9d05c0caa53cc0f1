// Lists and GETs.
#include "controller/kai/kai_reads.h"

#include <fmt/format.h>

#include <optional>
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
  k8s::Result<std::vector<KaiPod>> found = co_await list_pods(selector, limits);
  co_return found;
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
  auto devices = found->data.find(std::string(kai::kVisibleDevices));
  if (devices == found->data.end() || !devices->second) co_return out;
  out.known = true;
  out.devices = first_bytes(*devices->second, kMostDevices);
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
  k8s::ItemFunction sink(take, [](const k8s::Error& /*why*/) {});
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

}  // namespace gso
