// Sums over the nodes, and three lists.
#include "controller/commands/rollout/quota_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/reading/forbidden_hint.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace asio = boost::asio;
using Json = nlohmann::json;

namespace {

using Offers = std::map<std::string, OfferChange>;
using Found = std::vector<QuotaChange>;

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  const auto at = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && at != object.end() ? *at : kNothing;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string name_of(const Json& object) {
  const Json& meta = member(object, "metadata");
  const std::string name = text_of(member(meta, "name"));
  const Json& ns = member(meta, "namespace");
  return ns.is_string() ? ns.get<std::string>() + "/" + name : name;
}

void read_quota(const Json& object, const Offers& offers, Found& out) {
  const Json& hard = member(member(object, "spec"), "hard");
  if (!hard.is_object()) return;
  for (const auto& [key, value] : hard.items()) {
    std::string_view resource = key;
    for (const std::string_view prefix : {"requests.", "limits."}) {
      if (resource.starts_with(prefix)) resource.remove_prefix(prefix.size());
    }
    if (!offers.contains(std::string(resource))) continue;
    out.push_back(
        {"ResourceQuota " + name_of(object), fmt::format("{}={}", key, text_of(value)), std::string(resource)});
  }
}

// scheduling.run.ai/v2: spec.resources.gpu.{quota,limit}, -1 for none.
void read_kai_queue(const Json& object, const Offers& offers, Found& out) {
  if (!offers.contains(std::string(kGpuResource))) return;
  const Json& gpu = member(member(member(object, "spec"), "resources"), "gpu");
  for (const char* field : {"quota", "limit"}) {
    const Json& value = member(gpu, field);
    if (!value.is_number() || value.get<double>() < 0) continue;
    out.push_back({"KAI queue " + name_of(object), fmt::format("resources.gpu.{}={}", field, value.dump()),
                   std::string(kGpuResource)});
  }
}

void read_cluster_queue(const Json& object, const Offers& offers, Found& out) {
  const Json& groups = member(member(object, "spec"), "resourceGroups");
  for (const Json& group : groups.is_array() ? groups : Json::array()) {
    const Json& flavors = member(group, "flavors");
    for (const Json& flavor : flavors.is_array() ? flavors : Json::array()) {
      const Json& resources = member(flavor, "resources");
      for (const Json& resource : resources.is_array() ? resources : Json::array()) {
        const Json& name = member(resource, "name");
        if (!name.is_string() || !offers.contains(name.get<std::string>())) continue;
        out.push_back({"Kueue ClusterQueue " + name_of(object),
                       fmt::format("{} {}={}", text_of(member(flavor, "name")), name.get<std::string>(),
                                   text_of(member(resource, "nominalQuota"))),
                       name.get<std::string>()});
      }
    }
  }
}

struct Kind {
  k8s::Gvr gvr;
  void (*read)(const Json& object, const Offers& offers, Found& out);
};

const std::array<Kind, 3>& kinds() {
  static const std::array<Kind, 3> kKinds{{{resources::resource_quotas, &read_quota},
                                           {resources::kai_queues, &read_kai_queue},
                                           {{"kueue.x-k8s.io", "v1beta1", "clusterqueues"}, &read_cluster_queue}}};
  return kKinds;
}

}  // namespace

std::vector<QuotaChange> quotas_in(std::string_view resource, std::string_view json,
                                   const std::map<std::string, OfferChange>& offers) {
  std::vector<QuotaChange> out;
  for (const Kind& kind : kinds()) {
    if (kind.gvr.resource == resource) kind.read(Json::parse(json, nullptr, false), offers, out);
  }
  return out;
}

std::map<std::string, OfferChange> offer_changes(const World& world, const std::vector<NodeDifference>& differences) {
  std::map<std::string, OfferChange> out;
  for (const NodeDifference& difference : differences) {
    const Node* node = world.nodes.find(difference.node);
    if (node == nullptr || difference.serves.empty()) continue;
    for (const auto& [resource, count] : node->capacity) out[std::string(resource.view())].before += count;
    for (const auto& [resource, count] : difference.serves) out[resource].after += count;
    // What the profile does not speak of stays.
    for (const auto& [resource, count] : node->capacity) {
      if (!difference.serves.contains(std::string(resource.view()))) out[std::string(resource.view())].after += count;
    }
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.before == entry.second.after; });
  return out;
}

asio::awaitable<std::vector<QuotaChange>> quota_changes(k8s::Reader* client, std::map<std::string, OfferChange> offers,
                                                        std::vector<std::string>* incomplete) {
  std::vector<QuotaChange> out;
  if (offers.empty()) co_return out;
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    const Kind& kind = kinds()[i];
    std::vector<QuotaChange> found;
    k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
      if (!json) {
        found.clear();
        return {};
      }
      std::ranges::move(quotas_in(kind.gvr.resource, *json, offers), std::back_inserter(found));
      return {};
    });
    const k8s::ListOptions everywhere;
    const k8s::Result<std::string> listed = co_await client->list(kind.gvr, everywhere, &sink);
    std::ranges::move(found, std::back_inserter(out));
    const bool absent = !listed && listed.error().reason == k8s::Reason::not_found;
    if (!listed && !absent) append_unique(*incomplete, unlisted(listed.error(), kind.gvr).error().message);
  }
  co_return out;
}

}  // namespace gso
