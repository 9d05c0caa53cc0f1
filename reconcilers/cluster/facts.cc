// GPU facts of a node, and the expectation that follows from a profile.
#include "reconcilers/cluster/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "k8sclient/value/selectors.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/profile/mps.h"

namespace gso {

bool is_sharing_label(std::string_view label) {
  if (label == kMpsCapable) return true;
  return label.starts_with("nvidia.com/") &&
         (label.ends_with(".replicas") || label.ends_with(".sharing-strategy") || label.ends_with(".product"));
}

std::string host_pipe_directory(const Node& node) {
  const std::string_view said = node.meta.annotations.get(kMpsHostAnnotation).value_or("");
  if (said.starts_with('/')) return clean_path(said);
  if (said != "true") return {};
  const std::string_view former = node.meta.labels.get("nvidia.com/cuda.driver.major").value_or("");
  return std::string(
      default_pipe_directory(node.meta.labels.get("nvidia.com/cuda.driver-version.major").value_or(former), true));
}

namespace {

std::int64_t label_number(const Node& node, std::string_view key) {
  return std::max<std::int64_t>(whole_number(node.meta.labels.get(key)).value_or(0), 0);
}

std::string without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return std::string(text);
}

bool mig_configured(const Node& node) {
  const auto config = node.meta.labels.get(kMigConfig);
  if (!config || config->empty() || *config == "all-disabled") return false;
  // The MIG manager has finished, or the node has no state label.
  return node.meta.labels.get(kMigConfigState).value_or("success") == "success";
}

void add_mig_facts(const Node& node, GpuFacts& facts) {
  constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
  constexpr std::string_view kCount = ".count";
  for (const auto& entry : node.meta.labels) {
    const std::string_view key = entry.key.view();
    if (!key.starts_with(kMigPrefix) || !key.ends_with(kCount)) continue;
    const auto count = label_number(node, key);
    if (count > 0) facts.mig_counts[std::string(key.substr(0, key.size() - kCount.size()))] = count;
  }
  const bool served = std::ranges::any_of(
      node.capacity, [&](const auto& entry) { return entry.first.view().starts_with(kMigPrefix) && entry.second > 0; });
  facts.mig_enabled = facts.mig_enabled || served || !facts.mig_counts.empty() || mig_configured(node) ||
                      facts.product.find("-MIG-") != std::string::npos;
}

// The lowest compute capability of a family, if only the family label exists.
void add_family(const Node& node, GpuFacts& facts) {
  const auto family = node.meta.labels.get("nvidia.com/gpu.family").value_or("");
  const GpuFamily* const known = std::ranges::find(kGpuFamilies, family, &GpuFamily::name);
  if (known == std::end(kGpuFamilies)) return;
  facts.compute_major = known->major;
  facts.compute_minor = known->minor;
}

}  // namespace

GpuFacts facts_of(const Node& node, std::int64_t recorded) {
  GpuFacts facts;
  if (auto text = node.meta.annotations.get(kDevicesAnnotation)) {
    auto devices = parse_devices(*text);
    if (devices) {
      facts.devices = std::move(*devices);
      facts.mig_enabled = std::ranges::any_of(*facts.devices, &Device::mig_enabled);
    } else {
      facts.problem = devices.error().message;
    }
  }
  facts.product = without_suffix(node.meta.labels.get(kGpuProduct).value_or(""), "-SHARED");
  if (facts.product.empty() && facts.devices && !facts.devices->empty())
    facts.product = sanitise_product(facts.devices->front().name);
  facts.count = recorded > 0 ? recorded : label_number(node, kGpuCount);
  const auto left = whole_number(node.meta.annotations.get(kGpuCountAnnotation));
  if (left && *left > 0) facts.count = *left;
  facts.compute_major = static_cast<int>(label_number(node, kComputeMajor));
  facts.compute_minor = static_cast<int>(label_number(node, kComputeMinor));
  if (facts.compute_major == 0) add_family(node, facts);
  facts.mig_strategy = std::string(node.meta.labels.get(kMigStrategy).value_or(""));
  add_mig_facts(node, facts);
  return facts;
}

std::vector<Device> devices_of(const GpuFacts& facts) {
  constexpr std::int64_t kEnough = 2;  // All devices are identical.
  if (facts.devices) return *facts.devices;
  if (facts.mig_enabled) return {};
  Device device;
  device.name = facts.product.empty() ? "GPU" : facts.product;
  device.compute_major = facts.compute_major;
  device.compute_minor = facts.compute_minor;
  if (facts.compute_major == 0) {  // Unknown: report only what no GPU supports.
    device.compute_major = 7;
    device.compute_minor = 5;
  }
  return std::vector<Device>(static_cast<std::size_t>(std::clamp<std::int64_t>(facts.count, 1, kEnough)), device);
}

bool serves_gpus(const Node& node) {
  return std::ranges::any_of(node.allocatable, [](const auto& entry) { return entry.second > 0; });
}

bool has_gpus(const Node& node) {
  const bool capacity = std::ranges::any_of(node.capacity, [](const auto& entry) { return entry.second > 0; });
  return capacity || node.meta.annotations.contains(kDevicesAnnotation) || label_number(node, kGpuCount) > 0 ||
         node.meta.labels.get("nvidia.com/gpu.present") == "true" ||
         node.meta.annotations.contains(kRevisionAnnotation) || node.meta.annotations.contains(kChangeAnnotation);
}

std::int64_t labelled_gpus(const Node& node) {
  return label_number(node, kGpuCount);
}

std::int64_t measured_gpus(const Node& node, const Profile& profile) {
  const SharingSection* section = profile.active();
  const std::int64_t replicas = profile.plugin_replicas(kGpuResource);
  const bool renamed = section != nullptr && section->rename_by_default && replicas > 1;
  const std::string_view serving = renamed ? "nvidia.com/gpu.shared" : kGpuResource;
  for (const auto& [resource, capacity] : node.capacity)
    if (resource == serving && replicas > 0 && capacity % replicas == 0) return capacity / replicas;
  return 0;
}

bool NodeExpectation::serves(std::string_view resource) const {
  const auto counted = capacity.find(std::string(resource));
  return (counted != capacity.end() && counted->second > 0) || divisible.contains(std::string(resource));
}

namespace {

// One resource, by GFD's and the plugin's rules (expected.h has them in full, for known devices).
void add_resource(const Profile& profile, std::string_view resource, std::int64_t count, std::string_view product,
                  NodeExpectation& out) {
  const auto* section = profile.active();
  const std::int64_t labelled = profile.gfd_replicas(resource);
  const std::int64_t registered = profile.plugin_replicas(resource);
  const bool rename = section != nullptr && section->rename_by_default;
  const std::string key(resource);
  const bool shared = labelled > 1;
  out.labels[key + ".replicas"] = std::to_string(labelled);
  out.labels[key + ".sharing-strategy"] = shared ? std::string(to_string(profile.strategy())) : "none";
  if (!product.empty()) {
    std::string value = fmt::format("{}{}", product, shared && !rename ? "-SHARED" : "");
    (k8s::label_value_problem(value) ? out.dropped_labels : out.labels)[key + ".product"] = std::move(value);
  }
  const bool renamed = rename && registered > 1;
  const std::string serving = renamed ? key + ".shared" : key;
  out.capacity[renamed ? key : key + ".shared"] = 0;
  if (count > 0) {
    std::int64_t total = 0;
    out.replicas[serving] = registered;
    out.capacity[serving] = __builtin_mul_overflow(count, registered, &total) ? INT64_MAX : total;
  } else {
    out.divisible[serving] = registered;
  }
}

NodeExpectation from_devices(const Profile& profile, const std::vector<Device>& devices) {
  NodeExpectation out;
  Expectation expected = expected_state(profile, devices);
  out.strategy = profile.strategy();
  out.error = std::move(expected.error);
  for (auto& [key, value] : expected.labels) {
    // With two models GFD picks the product at random in each loop.
    if (is_sharing_label(key) && !(expected.labels_unreliable && key.ends_with(".product"))) out.labels[key] = value;
  }
  for (auto& [key, value] : expected.dropped_labels)
    if (is_sharing_label(key)) out.dropped_labels[key] = value;
  out.capacity = std::move(expected.allocatable);
  for (const auto& [resource, count] : std::map(out.capacity)) {
    const bool renamed = resource.ends_with(".shared");
    if (count > 0) out.replicas[resource] = profile.plugin_replicas(without_suffix(resource, ".shared"));
    out.capacity.try_emplace(renamed ? without_suffix(resource, ".shared") : resource + ".shared", 0);
  }
  return out;
}

}  // namespace

NodeExpectation expect_on_node(const Profile& original, const GpuFacts& facts, std::string_view mig_strategy_env) {
  Profile profile = original;
  if (!mig_strategy_env.empty()) profile.mig_strategy = mig_strategy_env;
  if (facts.devices && !facts.devices->empty()) return from_devices(profile, *facts.devices);
  NodeExpectation out;
  out.strategy = profile.strategy();
  const bool mps = out.strategy == Strategy::mps;
  const std::vector<Device> devices = devices_of(facts);
  if (auto faults = mps_faults(profile, profile.mig_strategy, {&devices, facts.mig_enabled}); !faults.empty())
    out.error = std::move(faults.front().message);
  if (!out.error) out.labels[std::string(kMpsCapable)] = mps ? "true" : "false";
  if (profile.mig_strategy == "mixed" && !facts.mig_counts.empty()) {
    const std::string model = facts.product.substr(0, facts.product.find("-MIG-"));
    for (const auto& [resource, count] : facts.mig_counts) {
      const std::string name = resource.substr(std::string_view("nvidia.com/").size() + 4);
      add_resource(profile, resource, count, model.empty() ? "" : fmt::format("{}-MIG-{}", model, name), out);
    }
    return out;
  }
  // MIG-enabled GPUs under migStrategy none are served whole, and GFD's labels for them say 0 replicas.
  const bool count_from_labels = !facts.mig_enabled || profile.mig_strategy == "single";
  add_resource(profile, kGpuResource, facts.count, facts.product, out);
  if (!count_from_labels) std::erase_if(out.labels, [](const auto& entry) { return entry.first != kMpsCapable; });
  return out;
}

namespace {

std::int64_t amount(const ResourceCounts& resources, std::string_view name) {
  // Few entries: a scan costs less than interning the name.
  for (const auto& [key, count] : resources)
    if (key == name) return count;
  return 0;
}

void verify_capacity(const NodeExpectation& expectation, const Node& node, bool has_read, Verification& out) {
  auto wrong = [&](std::string text) {
    if (out.mismatch.empty()) out.mismatch = std::move(text);
  };
  bool only_short = true;
  bool only_more = true;
  for (const auto& [resource, expected] : expectation.capacity) {
    const std::int64_t capacity = amount(node.capacity, resource);
    const std::int64_t allocatable = amount(node.allocatable, resource);
    if (expected == 0) {
      // For five minutes the kubelet keeps the capacity of a resource that is no longer registered; allocatable drops
      // at once.
      if (allocatable != 0) {
        only_short = only_more = false;
        wrong(fmt::format("{}: allocatable {}, expected 0", resource, allocatable));
      }
      continue;
    }
    out.serving = out.serving || allocatable > 0;
    if (capacity != expected) {
      const auto per_device = expectation.replicas.find(resource);
      const bool whole = per_device != expectation.replicas.end() && capacity % per_device->second == 0;
      only_more = only_more && whole && allocatable > 0 && capacity > expected;
      const bool of_this_profile = has_read || capacity > expected / 2;
      only_short = only_short && whole && allocatable > 0 && capacity < expected && of_this_profile;
      wrong(fmt::format("{}: capacity {}, expected {}", resource, capacity, expected));
    } else if (allocatable <= 0 || allocatable > capacity) {
      only_short = only_more = false;
      wrong(fmt::format("{}: allocatable {} of {}", resource, allocatable, capacity));
    } else {
      out.unhealthy = out.unhealthy || allocatable < capacity;
    }
  }
  for (const auto& [resource, replicas] : expectation.divisible) {
    const std::int64_t capacity = amount(node.capacity, resource);
    const std::int64_t allocatable = amount(node.allocatable, resource);
    out.serving = out.serving || allocatable > 0;
    if (capacity > 0 && capacity % std::max<std::int64_t>(replicas, 1) == 0 && allocatable > 0) continue;
    only_short = only_more = false;
    wrong(fmt::format("{}: capacity {}, allocatable {}; expected a multiple of {}", resource, capacity, allocatable,
                      replicas));
  }
  out.shortfall = !out.mismatch.empty() && only_short;
  out.surplus = !out.mismatch.empty() && only_more;
}

}  // namespace

Verification verify(const NodeExpectation& expectation, const Node& node, bool labels, bool has_read) {
  Verification out;
  if (expectation.error) {
    out.mismatch = *expectation.error;
    return out;
  }
  verify_capacity(expectation, node, has_read, out);
  if (labels) {
    for (const auto& [key, value] : expectation.labels) {
      const auto actual = node.meta.labels.get(key);
      if (actual == value) continue;
      out.shortfall = out.surplus = false;
      if (out.mismatch.empty() || actual) {
        out.mismatch = actual ? fmt::format("label {} is {}, expected {}", key, shown_value(*actual), value)
                              : fmt::format("label {} is missing, expected {}", key, value);
      }
      break;
    }
  }
  out.ok = out.mismatch.empty();
  return out;
}

std::shared_ptr<const NodeExpectation> ExpectationCache::get(const ProfilePtr& profile, const GpuFacts& facts,
                                                             std::string_view mig_strategy_env) {
  // Nodes with a devices annotation are rare and computed one by one.
  if (facts.devices)
    return std::make_shared<const NodeExpectation>(expect_on_node(profile->profile(), facts, mig_strategy_env));
  Identity of;
  of << profile->revision << facts.product << facts.count << facts.mig_enabled << facts.mig_strategy << mig_strategy_env
     << facts.compute_major << facts.compute_minor;
  for (const auto& [resource, count] : facts.mig_counts) of << resource << count;
  auto& slot = cache_[of.take()];
  auto shared = slot.lock();
  if (!shared) {
    shared = std::make_shared<const NodeExpectation>(expect_on_node(profile->profile(), facts, mig_strategy_env));
    slot = shared;
    if (cache_.size() > 4096) std::erase_if(cache_, [](const auto& entry) { return entry.second.expired(); });
  }
  return shared;
}

namespace {

std::optional<std::string_view> field_or_label(const Node& node, std::string_view key) {
  if (key == "metadata.name") return node.meta.name;
  return node.meta.labels.get(key);
}

bool matches(const NodeSelectorRequirement& requirement, const Node& node) {
  const auto value = field_or_label(node, requirement.key.view());
  auto listed = [&] {
    return value && std::ranges::any_of(requirement.values, [&](const Interned& v) { return v == *value; });
  };
  auto compared = [&](auto compare) {
    if (!value || requirement.values.size() != 1) return false;
    const auto left = whole_number(*value);
    const auto right = whole_number(requirement.values.front().view());
    return left && right && compare(*left, *right);
  };
  const std::string_view op = requirement.op.view();
  if (op == "In") return listed();
  if (op == "NotIn") return !listed();
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  if (op == "Gt") return compared([](auto a, auto b) { return a > b; });
  if (op == "Lt") return compared([](auto a, auto b) { return a < b; });
  return false;
}

// Taints that every DaemonSet pod tolerates.
constexpr std::string_view kDaemonTaints[] = {
    "node.kubernetes.io/not-ready",           "node.kubernetes.io/unreachable",  "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",     "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
};

bool tolerated(const Taint& taint, const Operand& operand) {
  if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
  if (std::ranges::find(kDaemonTaints, taint.key.view()) != std::end(kDaemonTaints)) return true;
  return tolerates(operand.tolerations, taint);
}

}  // namespace

bool matches_terms(const std::vector<std::vector<NodeSelectorRequirement>>& affinity_terms, const Node& node) {
  if (affinity_terms.empty()) return true;
  return std::ranges::any_of(affinity_terms, [&](const auto& term) {
    // A term without requirements matches nothing.
    return !term.empty() && std::ranges::all_of(term, [&](const auto& r) { return matches(r, node); });
  });
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    const bool exists = toleration.op == "Exists";
    if (toleration.key.empty()) return exists;
    return toleration.key == taint.key && (exists || toleration.value == taint.value);
  });
}

Selects selects(const Operand& operand, const Node& node, bool ignore_mps_capable) {
  Selects result = Selects::yes;
  for (const auto& [key, value] : operand.node_selector) {
    if (ignore_mps_capable && key == kMpsCapable) continue;
    const auto actual = node.meta.labels.get(key);
    if (actual == value) continue;
    if (!actual || !key.starts_with(kDeployPrefix) || !actual->starts_with("paused-for-")) return Selects::no;
    result = Selects::paused;
  }
  if (!matches_terms(operand.affinity_terms, node)) return Selects::no;
  return untolerated(operand, node) != nullptr ? Selects::tainted : result;
}

const Taint* untolerated(const Operand& operand, const Node& node) {
  const auto found = std::ranges::find_if(node.taints, [&](const Taint& taint) { return !tolerated(taint, operand); });
  return found == node.taints.end() ? nullptr : &*found;
}

std::string to_string(const Taint& taint) {
  std::string out(taint.key.view());
  if (!taint.value.empty()) out.append("=").append(taint.value.view());
  return out.append(":").append(taint.effect.view());
}

}  // namespace gso
