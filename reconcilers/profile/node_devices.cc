// Node manifest to GPUs.
#include "reconcilers/profile/node_devices.h"

#include <string>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/device_list.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/go_numbers.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

constexpr std::int64_t kMostGpus = 1024;  // No machine has more; a label that says so is wrong.

std::string_view label(const DocumentValue* labels, std::string_view key) {
  return labels != nullptr ? labels->string_at(key) : std::string_view();
}

std::int64_t number(const DocumentValue* labels, std::string_view key) {
  return parse_go_int(label(labels, key), 10).value_or(0);
}

std::string_view without(std::string_view text, std::string_view suffix) {
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

k8s::Result<std::vector<Device>> from_labels(const DocumentValue* labels) {
  const std::string_view product = label(labels, "nvidia.com/gpu.product");
  const std::int64_t count = number(labels, kGpuCount);
  const std::string_view counted = label(labels, kGpuCount);
  if (!product.empty() && !counted.empty() && (count < 1 || count > kMostGpus)) {
    return k8s::fail(k8s::Reason::decode,
                     fmt::format("label {} of the node is \"{}\"; it must be a whole number from 1 to {}", kGpuCount,
                                 shown_value(counted), kMostGpus));
  }
  if (product.empty() || count < 1) {
    return k8s::fail(
        k8s::Reason::decode,
        fmt::format("the node has no annotation {}, and not both of GFD's labels nvidia.com/gpu.product and "
                    "nvidia.com/gpu.count; give its GPUs with --devices",
                    kDevicesAnnotation));
  }
  if (product.find("-MIG-") != std::string_view::npos || !label(labels, "nvidia.com/mig.strategy").empty()) {
    return k8s::fail(k8s::Reason::decode, fmt::format("the node's labels do not show which GPU has which MIG devices; "
                                                      "pass them with --devices or in the annotation {}",
                                                      kDevicesAnnotation));
  }
  Device device;
  device.name = without(product, "-SHARED");
  device.memory_mib = number(labels, "nvidia.com/gpu.memory");
  device.compute_major = static_cast<int>(number(labels, "nvidia.com/gpu.compute.major"));
  device.compute_minor = static_cast<int>(number(labels, "nvidia.com/gpu.compute.minor"));
  device.mig_capable = label(labels, "nvidia.com/mig.capable") == "true";
  const std::string_view mode = label(labels, "nvidia.com/gpu.mode");
  device.pci_class = mode == "graphics" ? 0x030000 : mode == "unknown" ? 0 : 0x030200;
  return std::vector<Device>(static_cast<std::size_t>(count), device);
}

}  // namespace

k8s::Result<std::vector<Device>> devices_of_node(std::string_view manifest) {
  YamlStream stream(manifest, {.bytes = std::size_t{16} << 20});
  const auto document = stream.next();
  if (!document) {
    return k8s::fail(k8s::Reason::decode, stream.error()
                                              ? fmt::format("line {}, column {}: {}", stream.error()->at.line,
                                                            stream.error()->at.column, stream.error()->message)
                                              : std::string("the file is empty; a Node is needed"));
  }
  std::vector<Diagnostic> diagnostics;
  const DocumentValue read = to_document_value(*document->root, DecodeTarget::none, diagnostics);
  // `kubectl get nodes -o yaml` prints a List.
  const DocumentValue* items = read.string_at("kind").ends_with("List") ? read.find("items") : nullptr;
  if (items != nullptr && items->items.size() != 1) {
    return k8s::fail(k8s::Reason::decode,
                     fmt::format("the list has {} objects; one Node is needed", items->items.size()));
  }
  const DocumentValue& node = items != nullptr ? items->items.front() : read;
  const DocumentValue* metadata = node.find("metadata");
  if (node.string_at("kind") != "Node" || metadata == nullptr) {
    const std::string_view kind = node.string_at("kind");
    return k8s::fail(k8s::Reason::decode,
                     kind.empty() ? std::string("the document has no kind; give a Node, as `kubectl get node NAME -o "
                                                "yaml` prints it")
                                  : fmt::format("the document is a {}; give a Node with metadata, as `kubectl get node "
                                                "NAME -o yaml` prints it",
                                                shown_value(kind)));
  }
  const DocumentValue* annotations = metadata->find("annotations");
  if (annotations != nullptr && annotations->find(kDevicesAnnotation) != nullptr) {
    auto devices = parse_devices(annotations->string_at(kDevicesAnnotation));
    if (devices) return devices;
    return k8s::fail(k8s::Reason::decode,
                     fmt::format("annotation {}: {}", kDevicesAnnotation, devices.error().message));
  }
  return from_labels(metadata->find("labels"));
}

}  // namespace gso
