#include "reconcilers/cluster/dra_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"

namespace gso {

std::string double_offer(std::string_view device_class) {
  return fmt::format(
      "the DRA driver {} offers the GPUs of this node as well, and DeviceClass {} has extendedResourceName: {}. While "
      "the device plugin restarts, the scheduler gives the same GPU to a second pod, so the operator restarts no pod "
      "on this node. Remove extendedResourceName from the DeviceClass, or keep the DRA driver off the node",
      kGpuDraDriver, device_class, kGpuResource);
}

std::string double_offer_of(std::string_view resource, std::string_view device_class) {
  return fmt::format(
      "the DRA driver {} offers the GPUs of this node as well, and DeviceClass {} has extendedResourceName: {}, which "
      "the node's device plugin serves. While the plugin restarts, the scheduler gives the same GPU to a second pod. "
      "Remove extendedResourceName from the DeviceClass, or keep the DRA driver off the node",
      kGpuDraDriver, device_class, resource);
}

void DraOffers::attach(World& world) {
  world.device_classes.add_listener([this](const ObjectKey&, const auto&, const auto&) { classes_changed_ = true; });
  world.resource_slices.add_listener([this](const ObjectKey&, const auto& before, const auto& after) {
    if (everything_) return;
    if (before != nullptr) count(*before, -1);
    if (after != nullptr) count(*after, 1);
  });
}

void DraOffers::count(const ResourceSlice& slice, std::int64_t by) {
  if (slice.driver != kGpuDraDriver || !slice.offers) return;
  if (slice.all_nodes) {
    all_nodes_ += by;
    all_nodes_changed_ = true;
    return;
  }
  if (slice.node.empty()) return;
  std::string node(slice.node.view());
  if (std::int64_t& slices = offered_[node]; (slices += by) == 0) offered_.erase(node);
  changed_.insert(std::move(node));
}

void DraOffers::note_offering_changed(const World& world) {
  for (std::string& name : offering(world)) changed_.insert(std::move(name));
}

void DraOffers::refresh(const World& world) {
  if (everything_) {
    for (const auto& [node, slices] : std::exchange(offered_, {})) changed_.insert(node);
    all_nodes_changed_ = std::exchange(all_nodes_, 0) != 0;
    for (const auto& [key, slice] : world.resource_slices.all()) count(*slice, 1);
  }
  if (everything_ || classes_changed_) {
    classes_.clear();
    for (const auto& [key, device_class] : world.device_classes.all()) {
      const std::string resource(device_class->extended_resource.view());
      if (!resource.starts_with("nvidia.com/")) continue;
      const auto [known, added] = classes_.emplace(resource, key.name);
      if (!added && key.name < known->second) known->second = key.name;
    }
    const auto gpus = classes_.find(std::string(kGpuResource));
    const std::string found = gpus == classes_.end() ? std::string() : gpus->second;
    if (found != device_class_) {
      note_offering_changed(world);
      device_class_ = found;
    }
  }
  if (all_nodes_changed_) {
    for (const auto& [key, node] : world.nodes.all()) changed_.insert(key.name);
  }
  everything_ = classes_changed_ = all_nodes_changed_ = false;
}

std::vector<std::string> DraOffers::take_changed_nodes() {
  std::vector<std::string> out(changed_.begin(), changed_.end());
  changed_.clear();
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> DraOffers::nodes(const World& world) const {
  return device_class_.empty() ? std::vector<std::string>() : offering(world);
}

std::vector<std::string> DraOffers::offering(const World& world) const {
  std::vector<std::string> out;
  for (const auto& [node, slices] : offered_) out.push_back(node);
  if (all_nodes_ > 0) {
    for (const auto& [key, node] : world.nodes.all()) {
      if (!offered_.contains(key.name)) out.push_back(key.name);
    }
  }
  std::ranges::sort(out);
  return out;
}

const std::string& DraOffers::class_of(std::string_view node) const {
  static const std::string kNone;
  return !device_class_.empty() && (all_nodes_ > 0 || offered_.contains(std::string(node))) ? device_class_ : kNone;
}

using Json = nlohmann::json;

namespace {

constexpr std::string_view kClaim = "ResourceClaim";
constexpr std::string_view kTemplate = "ResourceClaimTemplate";
constexpr std::string_view kClass = "DeviceClass";

k8s::ObjectKey key_of(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  return {text_at(meta, "namespace"), text_at(meta, "name")};
}

}  // namespace

bool PodClaims::reads(std::string_view kind) {
  return kind == kClaim || kind == kTemplate || kind == kClass;
}

// A request has its class itself (v1beta1), in `exactly`, or in each alternative of `firstAvailable`.
PodClaims::Claim PodClaims::read(const Json& spec, const Json& status) {
  Claim out;
  const auto note = [&](const Json& request) {
    const std::string device_class = text_at(request, "deviceClassName");
    if (!device_class.empty()) out.classes.insert(device_class);
    return !device_class.empty();
  };
  for (const Json& request : list_at(object_at(spec, "devices"), "requests")) {
    bool named = note(request) || note(object_at(request, "exactly"));
    for (const Json& alternative : list_at(request, "firstAvailable")) named = note(alternative) || named;
    out.unclear = out.unclear || !named;
  }
  for (const Json& result : list_at(object_at(object_at(status, "allocation"), "devices"), "results"))
    out.drivers.insert(text_at(result, "driver"));
  out.unclear = out.unclear || out.classes.empty();
  return out;
}

void PodClaims::add(std::string_view kind, std::string_view json) {
  const Json object = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!object.is_object()) return;
  if (kind == kClass) {
    if (dump(object_at(object, "spec")).find(kGpuDraDriver) != std::string::npos)
      gpu_classes_.insert(key_of(object).name);
  } else if (kind == kTemplate) {
    templates_.insert_or_assign(key_of(object), read(object_at(object_at(object, "spec"), "spec"), Json()));
  } else {
    claims_.insert_or_assign(key_of(object), read(object_at(object, "spec"), object_at(object, "status")));
  }
}

bool PodClaims::is_for_gpu(const Claim& claim) const {
  if (!claim.drivers.empty()) return claim.drivers.contains(std::string(kGpuDraDriver));
  if (claim.unclear) return true;
  return std::ranges::any_of(claim.classes, [&](const std::string& device_class) {
    return gpu_classes_.contains(device_class) || device_class.ends_with("nvidia.com");
  });
}

// By its name, else by the name of the claim that was made of the template, else by the template.
const PodClaims::Claim* PodClaims::claim_of(const Json& pod, const Json& entry) const {
  const std::string ns = key_of(pod).ns;
  std::string name = text_at(entry, "resourceClaimName");
  for (const Json& made : list_at(object_at(pod, "status"), "resourceClaimStatuses")) {
    if (name.empty() && text_at(made, "name") == text_at(entry, "name")) name = text_at(made, "resourceClaimName");
  }
  if (const auto claim = claims_.find({ns, name}); claim != claims_.end()) return &claim->second;
  const auto made_of = templates_.find({ns, text_at(entry, "resourceClaimTemplateName")});
  return made_of == templates_.end() ? nullptr : &made_of->second;
}

std::string PodClaims::without_other_claims(std::string_view pod) const {
  Json object = Json::parse(pod.begin(), pod.end(), nullptr, false);
  if (!object.is_object()) return std::string(pod);
  const Json claims = list_at(object_at(object, "spec"), "resourceClaims");
  const bool of_gpu = std::ranges::any_of(claims, [&](const Json& entry) {
    const Claim* claim = claim_of(object, entry);
    return claim == nullptr || is_for_gpu(*claim);
  });
  if (claims.empty() || of_gpu) return std::string(pod);
  object["spec"].erase("resourceClaims");
  return dump(object);
}

}  // namespace gso
