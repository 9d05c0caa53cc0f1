// A list of GPUs, or a Node's manifest, to GPUs.
#include "reconcilers/profile/expected.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::unexpected<k8s::Error> unreadable(std::string why) {
  return k8s::fail(k8s::Reason::decode, std::move(why));
}

std::unexpected<k8s::Error> bad_device(std::size_t index, std::string_view what) {
  return unreadable(fmt::format("devices[{}]: {}", index, what));
}

bool read_mig_device(const Json& entry, MigDevice& out) {
  if (!entry.is_object() || !entry.contains("profile") || !entry["profile"].is_string()) return false;
  out.profile = entry["profile"].get<std::string>();
  const auto attributes = entry.find("attributes");
  if (attributes == entry.end()) return true;
  if (!attributes->is_object()) return false;
  for (const auto& [name, value] : attributes->items()) {
    if (!value.is_number_integer()) return false;
    out.attributes[name] = value.get<std::int64_t>();
  }
  return true;
}

constexpr std::string_view kDeviceList = "devices must be a JSON list of GPUs, such as [{\"name\": \"Tesla T4\"}]";

constexpr int kMostCapability = 999;  // Of compute capability, before and after the dot.

k8s::Result<Device> read_device(std::size_t index, const Json& entry) {
  Device out;
  if (!entry.is_object()) return bad_device(index, "must be an object");
  auto name = entry.find("name");
  if (name == entry.end() || !name->is_string())
    return bad_device(index, "name must be the product's name, such as \"Tesla T4\"");
  out.name = name->get<std::string>();
  // Absent and null leave the default.
  const auto read = [&](const char* field, auto& into) {
    const auto it = entry.find(field);
    if (it == entry.end() || it->is_null()) return true;
    if (std::is_same_v<decltype(into), bool&> ? !it->is_boolean() : !it->is_number_integer()) return false;
    it->get_to(into);
    return true;
  };
  if (!read("memoryMiB", out.memory_mib) || out.memory_mib < 0)
    return bad_device(index, "memoryMiB must be a whole number, 0 or more");
  if (!read("pciClass", out.pci_class)) return bad_device(index, "pciClass must be a whole number, such as 197120");
  if (!read("migCapable", out.mig_capable)) return bad_device(index, "migCapable must be true or false");
  if (!read("migEnabled", out.mig_enabled)) return bad_device(index, "migEnabled must be true or false");
  if (auto it = entry.find("computeCapability"); it != entry.end() && !it->is_null()) {
    const auto part = [&](std::size_t i) {
      return (*it)[i].is_number_integer() && (*it)[i] >= 0 && (*it)[i] <= kMostCapability;
    };
    if (!it->is_array() || it->size() != 2 || !part(0) || !part(1))
      return bad_device(index, "computeCapability must be [major, minor], such as [8, 0]");
    out.compute_major = (*it)[0].get<int>();
    out.compute_minor = (*it)[1].get<int>();
  }
  if (auto it = entry.find("migDevices"); it != entry.end() && !it->is_null()) {
    if (!it->is_array()) return bad_device(index, "migDevices must be a list");
    for (const Json& mig : *it)
      if (!read_mig_device(mig, out.mig_devices.emplace_back()))
        return bad_device(index, "migDevices needs entries {\"profile\":\"1g.5gb\",\"attributes\":{…numbers…}}");
  }
  return out;
}

void add_unknown_fields(std::size_t index, const Json& entry, std::vector<std::string>& out) {
  static constexpr std::array<std::string_view, 7> kFields{"name",       "memoryMiB",  "computeCapability", "pciClass",
                                                           "migCapable", "migEnabled", "migDevices"};
  for (const auto& [field, value] : entry.items()) {
    if (std::ranges::find(kFields, field) != kFields.end()) continue;
    out.push_back(fmt::format("devices[{}].{}: unknown field, which is ignored; {}", index, shown_value(field),
                              word_advice(field, kFields, "known fields:")));
  }
}

std::string placed(const YamlError& error) {
  return fmt::format("line {}, column {}: {}", error.at.line, error.at.column, error.message);
}

// Why the text is no JSON: by the YAML reader, which names the place, unless the text is YAML.
std::string not_json(std::string_view text) {
  YamlStream stream(text);
  while (stream.next()) continue;
  return stream.error() ? placed(*stream.error()) : "not JSON; " + std::string(kDeviceList);
}

// --- Of a Node.

constexpr std::int64_t kMostGpus = 1024;  // No machine has more; a label that says so is wrong.

std::string_view label(const DocumentValue* labels, std::string_view key) {
  return labels != nullptr ? labels->string_at(key) : std::string_view();
}

std::int64_t number(const DocumentValue* labels, std::string_view key) {
  return parse_go_int(label(labels, key), 10).value_or(0);
}

k8s::Result<std::vector<Device>> from_labels(const DocumentValue* labels) {
  const std::string_view product = label(labels, "nvidia.com/gpu.product");
  const std::int64_t count = number(labels, kGpuCount);
  const std::string_view counted = label(labels, kGpuCount);
  if (!product.empty() && !counted.empty() && (count < 1 || count > kMostGpus)) {
    return unreadable(fmt::format("label {} of the node is \"{}\"; it must be a whole number from 1 to {}", kGpuCount,
                                  shown_value(counted), kMostGpus));
  }
  if (product.empty() || count < 1) {
    return unreadable(
        fmt::format("the node has no annotation {}, and not both of GFD's labels nvidia.com/gpu.product and "
                    "nvidia.com/gpu.count; give its GPUs with --devices",
                    kDevicesAnnotation));
  }
  if (product.find("-MIG-") != std::string_view::npos || !label(labels, "nvidia.com/mig.strategy").empty()) {
    return unreadable(
        fmt::format("the node's labels do not show which GPU has which MIG devices; "
                    "pass them with --devices or in the annotation {}",
                    kDevicesAnnotation));
  }
  Device device;
  constexpr std::string_view kShared = "-SHARED";
  device.name = product.substr(0, product.size() - (product.ends_with(kShared) ? kShared.size() : 0));
  device.memory_mib = number(labels, "nvidia.com/gpu.memory");
  device.compute_major = static_cast<int>(number(labels, "nvidia.com/gpu.compute.major"));
  device.compute_minor = static_cast<int>(number(labels, "nvidia.com/gpu.compute.minor"));
  device.mig_capable = label(labels, "nvidia.com/mig.capable") == "true";
  const std::string_view mode = label(labels, "nvidia.com/gpu.mode");
  device.pci_class = mode == "graphics" ? 0x030000 : mode == "unknown" ? 0 : 0x030200;
  return std::vector<Device>(static_cast<std::size_t>(count), device);
}

}  // namespace

k8s::Result<std::vector<Device>> parse_devices(std::string_view json, std::vector<std::string>* ignored) {
  const Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) return unreadable(not_json(json));
  if (!root.is_array()) return unreadable(std::string(kDeviceList));
  std::vector<Device> out;
  for (std::size_t i = 0; i < root.size(); ++i) {
    auto device = read_device(i, root[i]);
    if (!device) return std::unexpected(device.error());
    out.push_back(std::move(*device));
    if (ignored != nullptr) add_unknown_fields(i, root[i], *ignored);
  }
  return out;
}

k8s::Result<std::vector<Device>> devices_of_node(std::string_view manifest) {
  YamlStream stream(manifest, {.bytes = std::size_t{16} << 20});
  const auto document = stream.next();
  if (!document)
    return unreadable(stream.error() ? placed(*stream.error()) : std::string("the file is empty; a Node is needed"));
  const DocumentValue read = to_document_value(*document->root);
  // `kubectl get nodes -o yaml` prints a List.
  const DocumentValue* items = read.string_at("kind").ends_with("List") ? read.find("items") : nullptr;
  if (items != nullptr && items->items.size() != 1)
    return unreadable(fmt::format("the list has {} objects; one Node is needed", items->items.size()));
  const DocumentValue& node = items != nullptr ? items->items.front() : read;
  const DocumentValue* metadata = node.find("metadata");
  if (node.string_at("kind") != "Node" || metadata == nullptr) {
    const std::string_view kind = node.string_at("kind");
    return unreadable(kind.empty()
                          ? std::string("the document has no kind; give a Node, as `kubectl get node NAME -o "
                                        "yaml` prints it")
                          : fmt::format("the document is a {}; give a Node with metadata, as `kubectl get node "
                                        "NAME -o yaml` prints it",
                                        shown_value(kind)));
  }
  const DocumentValue* annotations = metadata->find("annotations");
  if (annotations != nullptr && annotations->find(kDevicesAnnotation) != nullptr) {
    auto devices = parse_devices(annotations->string_at(kDevicesAnnotation));
    if (devices) return devices;
    return unreadable(fmt::format("annotation {}: {}", kDevicesAnnotation, devices.error().message));
  }
  return from_labels(metadata->find("labels"));
}

}  // namespace gso
