// Node and ConfigMap: JSON -> projected value.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/protobuf_object.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Annotations of a Node that a planner reads: the operator's, those of other components that the operator must respect,
// NFD's list of the labels that NFD owns (an NFD instance can prefix its name), and HAMi's mark.
bool keeps_node_annotation(std::string_view key) {
  constexpr std::string_view kPrefixes[] = {"gpusharing.dev/", "nvidia.com/", "nvidia.mps/", "nos.nebuly.com/",
                                            "kai.scheduler/"};
  if (std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); })) return true;
  return key.ends_with("nfd.node.kubernetes.io/feature-labels") || key == kKarpenterDoNotDisrupt ||
         key == kScaleDownDisabled || key == hami::kRegistered;
}

// The list of a machine's GPUs is long, and only that it is there is read: its changes must not wake planners.
void forget_registered_gpus(k8s::StringMap& annotations) {
  if (annotations.contains(hami::kRegistered)) annotations.set(hami::kRegistered, "");
}

// What a Node has and offers, whatever it is written in: quantity(field, out, parts) reads the amount of `resource`.
template <class Quantity>
bool read_gpus(std::string_view resource, std::string_view field, Quantity quantity, ResourceCounts& out) {
  return !resource.starts_with("nvidia.com/") || quantity(field, out[Interned(resource)], 1);
}

template <class Quantity>
bool read_small(std::string_view field, std::int64_t parts, Quantity quantity, std::int32_t& out) {
  std::int64_t read = 0;
  if (!quantity(field, read, parts)) return false;
  out = static_cast<std::int32_t>(std::clamp<std::int64_t>(read, 0, std::numeric_limits<std::int32_t>::max()));
  return true;
}

template <class Quantity>
bool read_allocatable(std::string_view resource, Quantity quantity, Node& node) {
  if (resource == "cpu") return read_small("status.allocatable.cpu", 1000, quantity, node.room.cpu);
  if (resource == "pods") return read_small("status.allocatable.pods", 1, quantity, node.room.pods);
  if (resource == "memory") return quantity("status.allocatable.memory", node.room.memory, 1);
  return read_gpus(resource, "status.allocatable", quantity, node.allocatable);
}

auto quantity_of(Fields& fields, Value amount) {
  return [&fields, amount](std::string_view field, std::int64_t& out, std::int64_t parts) {
    return fields.quantity(amount, field, out, parts);
  };
}

bool read_capacity(Fields& fields, Value value, std::string_view path, ResourceCounts& out) {
  return fields.object(value, path, [&](std::string_view resource, Value amount) {
    return read_gpus(resource, path, quantity_of(fields, amount), out);
  });
}

bool read_all_allocatable(Fields& fields, Value value, std::string_view path, Node& node) {
  return fields.object(value, path, [&](std::string_view resource, Value amount) {
    return read_allocatable(resource, quantity_of(fields, amount), node);
  });
}

constexpr json::Row<Node> kNode[] = {
    json::row<&Node::unschedulable>("spec.unschedulable"),
    json::list<&Node::taints>("spec.taints"),
    json::row<&Node::taints, &Taint::key>("spec.taints[].key"),
    json::row<&Node::taints, &Taint::value>("spec.taints[].value"),
    json::row<&Node::taints, &Taint::effect>("spec.taints[].effect"),
    json::row_by<read_capacity, &Node::capacity>("status.capacity"),
    {"status.allocatable", read_all_allocatable},
    json::row_by<json::read_ready, &Node::ready>("status.conditions"),
};

// The same from protobuf, which has what the API server has stored. Field numbers: generated.proto of k8s.io/api,
// core/v1.
namespace message {

namespace pb = k8s::protobuf;
using protozero::pbf_reader;

constexpr std::uint32_t kMetadata = pb::text(1);
constexpr std::uint32_t kSpec = pb::text(2);
constexpr std::uint32_t kStatus = pb::text(3);
// Of metadata.
constexpr std::uint32_t kName = pb::text(1);
constexpr std::uint32_t kResourceVersion = pb::text(6);
constexpr std::uint32_t kManagedFields = pb::text(17);
// Of the status.
constexpr std::uint32_t kCapacity = pb::text(1);
constexpr std::uint32_t kAllocatable = pb::text(2);
constexpr std::uint32_t kConditions = pb::text(4);

// Of a message of texts: sets the member of each field that has one.
template <class Text, class Object>
void read_texts(pbf_reader message, std::initializer_list<std::pair<std::uint32_t, Text Object::*>> members,
                Object& out) {
  pb::each_field(message, [&](std::uint32_t field, pbf_reader& value) {
    const auto* known = std::ranges::find_if(members, [&](const auto& member) { return member.first == field; });
    if (known == members.end()) return false;
    out.*(known->second) = Text(pb::view(value));
    return true;
  });
}

Taint read_taint(pbf_reader taint) {
  Taint out;
  read_texts<Interned, Taint>(
      taint, {{pb::text(1), &Taint::key}, {pb::text(2), &Taint::value}, {pb::text(3), &Taint::effect}}, out);
  return out;
}

void read_spec(pbf_reader spec, Node& node) {
  constexpr std::uint32_t kUnschedulable = pb::number(4);
  constexpr std::uint32_t kTaints = pb::text(5);
  pb::each_field(spec, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kUnschedulable) node.unschedulable = value.get_bool();
    if (field == kTaints) node.taints.push_back(read_taint(value.get_message()));
    return field == kUnschedulable || field == kTaints;
  });
}

// resource.Quantity: its text.
std::string_view read_quantity(std::string_view quantity) {
  constexpr std::uint32_t kString = pb::text(1);
  return pb::only_text(pbf_reader(quantity.data(), quantity.size()), kString);
}

void read_condition(pbf_reader condition, bool& ready) {
  json::Condition read;
  read_texts<std::string_view, json::Condition>(
      condition, {{pb::text(1), &json::Condition::type}, {pb::text(2), &json::Condition::status}}, read);
  if (read.type == "Ready") ready = read.status == "True";
}

void read_status(pbf_reader status, Fields& fields, Node& node) {
  const auto amount_in = [&fields](std::string_view amount) {
    return [&fields, text = read_quantity(amount)](std::string_view field, std::int64_t& out, std::int64_t parts) {
      return fields.quantity(text, field, out, parts);
    };
  };
  pb::each_field(status, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kConditions) {
      read_condition(value.get_message(), node.ready);
      return true;
    }
    if (field != kCapacity && field != kAllocatable) return false;
    const pb::MapEntry entry = pb::read_map_entry(value.get_message());
    if (field == kCapacity) read_gpus(entry.key, "status.capacity", amount_in(entry.value), node.capacity);
    if (field == kAllocatable) read_allocatable(entry.key, amount_in(entry.value), node);
    return true;
  });
}

void read_node(std::string_view text, Fields& fields, Node& node) {
  pb::each_field({text.data(), text.size()}, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kMetadata) pb::read_meta(value.get_message(), keeps_node_annotation, node.meta);
    if (field == kSpec) read_spec(value.get_message(), node);
    if (field == kStatus) read_status(value.get_message(), fields, node);
    return field == kMetadata || field == kSpec || field == kStatus;
  });
}

k8s::Result<Node> project(std::string_view text) {
  const auto object = k8s::open_protobuf(text);
  if (!object || object->kind != "Node")
    return k8s::fail(k8s::Reason::decode, "Node: the bytes are not a Node in protobuf");
  Node node;
  Fields fields;
  const bool read = k8s::read_protobuf([&] { read_node(object->message, fields, node); });
  if (!read) fields.fail("the message", "a Node in protobuf");
  node.meta.labels.share(kFeaturePrefix);
  forget_registered_gpus(node.meta.annotations);
  if (auto finished = json::finish("Node", fields, node.meta); !finished) return std::unexpected(finished.error());
  return node;
}

// A hash of the bytes of those fields of a message that `counts` names.
template <class Counts>
std::size_t print_of(pbf_reader message, Counts counts) {
  std::size_t out = 0;
  const auto here = [&message] { return message.data().data(); };
  for (const char* begin = here(); message.next(); begin = here()) {
    const bool counted = counts(message.tag_and_type());
    message.skip();
    if (counted) out = out * 31 + std::hash<std::string_view>{}({begin, here()});
  }
  return out;
}

// The print is of everything that read_node() reads, and of more that seldom changes. Heartbeats change none of it:
// they write the version, managedFields and the times of conditions.
k8s::Revision revision_of(std::string_view node) {
  k8s::Revision out;
  bool ready = false;
  const auto add = [&out](std::size_t print) { out.content = out.content * 31 + print; };
  pb::each_field({node.data(), node.size()}, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kSpec) add(std::hash<std::string_view>{}(pb::view(value)));
    if (field != kMetadata && field != kStatus) return field == kSpec;
    const pbf_reader part = value.get_message();
    if (field == kMetadata) {
      out.name = pb::only_text(part, kName);
      out.resource_version = pb::only_text(part, kResourceVersion);
      add(print_of(part, [](std::uint32_t inner) { return inner != kResourceVersion && inner != kManagedFields; }));
      return true;
    }
    add(print_of(part, [&](std::uint32_t inner) { return inner == kCapacity || inner == kAllocatable; }));
    pb::each_field(part, [&](std::uint32_t inner, pbf_reader& condition) {
      if (inner == kConditions) read_condition(condition.get_message(), ready);
      return inner == kConditions;
    });
    return true;
  });
  add(ready ? 1 : 2);
  return out;
}

}  // namespace message

// Annotations of a ConfigMap that planners read: the operator's stops, and the marks of GitOps tools and Helm.
bool keeps_configmap_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/") || key.starts_with("meta.helm.sh/") ||
         key.starts_with("argocd.argoproj.io/") || key.find(".toolkit.fluxcd.io/") != std::string_view::npos;
}

// One entry of managedFields that owns something below f:data.
struct DataManager {
  Interned manager;
  std::optional<WallTime> time;
  bool owns_data = false;
  std::vector<std::string> keys;
};

// With what decides about its times once all is read.
struct ReadConfigMap {
  ConfigMap config_map;
  std::vector<DataManager> managers;
};

bool read_owned(Fields& fields, Value value, std::string_view path, ReadConfigMap& out) {
  DataManager& entry = out.managers.back();
  return fields.object(value, path, [&](std::string_view field, Value owned) {
    entry.owns_data = entry.owns_data || field == "f:data" || field == "f:binaryData";
    return field != "f:data" || fields.object(owned, path, [&](std::string_view key, Value) {
      constexpr std::string_view kPrefix = "f:";
      if (key.starts_with(kPrefix)) entry.keys.emplace_back(key.substr(kPrefix.size()));
      return true;
    });
  });
}

// `kEncoded`: binaryData. Pods get these as files, like any other key.
template <bool kEncoded>
bool read_data(Fields& fields, Value value, std::string_view path, ReadConfigMap& out) {
  return fields.object(value, path, [&](std::string_view key, Value inner) {
    std::string name(key);
    const std::string place = fmt::format("{}.{}", path, name);
    std::optional<std::string> content;
    if (!fields.text(inner, place, content.emplace())) return false;
    if (kEncoded) content = k8s::base64_decode(*content);
    if (!content) return fields.fail(place, "base64");
    out.config_map.data[std::move(name)] = std::make_shared<const std::string>(*std::move(content));
    return true;
  });
}

constexpr json::Row<ReadConfigMap> kConfigMap[] = {
    json::list<&ReadConfigMap::managers>("metadata.managedFields"),
    json::row<&ReadConfigMap::managers, &DataManager::manager>("metadata.managedFields[].manager"),
    json::row<&ReadConfigMap::managers, &DataManager::time>("metadata.managedFields[].time"),
    {"metadata.managedFields[].fieldsV1", read_owned},
    json::row<&ReadConfigMap::config_map, &ConfigMap::immutable>("immutable"),
    {"data", read_data<false>},
    {"binaryData", read_data<true>},
};

void keep_data_managers(std::vector<DataManager> managers, ConfigMap& out) {
  std::erase_if(managers, [](const DataManager& entry) { return !entry.owns_data; });
  std::stable_sort(managers.begin(), managers.end(),
                   [](const DataManager& a, const DataManager& b) { return a.time < b.time; });
  out.data_changed = out.meta.creation_timestamp;
  // A manifest without a creation time was written by hand: its data counts as never changed.
  const bool by_hand = out.meta.creation_timestamp == WallTime{};
  out.data_time_known =
      by_hand || std::ranges::any_of(managers, [](const auto& entry) { return entry.time.has_value(); });
  for (const DataManager& entry : managers) {
    out.data_managers.push_back(entry.manager);
    if (entry.manager == kFieldManager) {
      out.our_keys.insert(entry.keys.begin(), entry.keys.end());
      continue;
    }
    if (entry.time) out.data_changed = std::max(out.data_changed, *entry.time);
  }
}

}  // namespace

k8s::Result<Node> project_node(std::string_view text) {
  if (k8s::is_protobuf(text)) return message::project(text);
  auto node = json::project<Node>("Node", text, {true, keeps_node_annotation}, kNode);
  if (!node) return node;
  node->meta.labels.share(kFeaturePrefix);
  forget_registered_gpus(node->meta.annotations);
  return node;
}

k8s::Revision revision_of_node(std::string_view object) {
  const auto node = k8s::open_protobuf(object);
  k8s::Revision out;
  if (!node || node->kind != "Node" || !k8s::read_protobuf([&] { out = message::revision_of(node->message); }))
    return {};
  return out;
}

k8s::Result<ConfigMap> project_configmap(std::string_view text) {
  ReadConfigMap out;
  const json::MetaFilter filter{true, keeps_configmap_annotation};
  auto read = json::read_object("ConfigMap", text, filter, kConfigMap, out.config_map.meta, out);
  if (!read) return std::unexpected(read.error());
  keep_data_managers(std::move(out.managers), out.config_map);
  return std::move(out.config_map);
}

}  // namespace gso
