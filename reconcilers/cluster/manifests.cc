// Manifests -> World, through the same projections as the live watches.
#include "reconcilers/cluster/manifests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMostProblems = 20;  // More than anybody reads at once.
constexpr std::string_view kKindMissing =
    "kind is missing; write the object's kind (`lint` checks a profile that is in no ConfigMap)";

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  return text;
}

// Calls on_item with each item of the root's `items`, which the result then lacks. Discarded: the text is no JSON.
template <class OnItem>
Json parse_list(std::string_view text, OnItem on_item) {
  bool named = false;
  bool in_items = false;
  return Json::parse(
      text.begin(), text.end(),
      [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key) {
          named = parsed == "items";
          in_items = false;
        }
        if (depth == 1 && event == Json::parse_event_t::array_start) in_items = named;
        const bool ends = event == Json::parse_event_t::object_end || event == Json::parse_event_t::value ||
                          event == Json::parse_event_t::array_end;
        if (!in_items || depth != 2 || !ends) return true;
        on_item(parsed);
        return false;
      },
      false);
}

// The object goes into that store of the World.
template <auto kProject, auto... kStore>
k8s::Result<void> add_to(World& world, std::string_view text) {
  auto object = kProject(text);
  if (!object) return std::unexpected(object.error());
  json::member_of<kStore...>(world).init_apply(*std::move(object));
  return {};
}

struct KindOfObject {
  std::string_view name;
  k8s::Result<void> (*add)(World& world, std::string_view text);
  std::string_view group{};  // Of its API, for a name that others use as well.
  std::string_view only{};   // The one object that is kept.
};
constexpr KindOfObject kKindsOfObjects[] = {
    {"Node", add_to<project_node, &World::nodes>},
    {"ConfigMap", add_to<project_configmap, &World::configmaps>},
    {"DaemonSet", add_to<project_daemonset, &World::daemonsets>},
    {"ControllerRevision", add_to<project_controller_revision, &World::revisions>},
    {"ClusterPolicy", add_to<project_clusterpolicy, &World::clusterpolicies>},
    {"GPUCluster", add_to<project_gpu_cluster, &World::gpu_clusters>},
    {"DeviceClass", add_to<project_device_class, &World::device_classes>},
    {"ResourceSlice", add_to<project_resource_slice, &World::resource_slices>},
    {"SharingPolicy", add_to<project_sharing_policy, &World::policies>},
    {"SharingRollout", add_to<project_sharing_rollout, &World::rollouts>},
    {"Lease", add_to<project_lease, &World::partitioning, &PartitioningWorld::leases>, "", kPartitionerLease},
    {"Config", add_to<project_kai_config, &World::kai, &KaiWorld::configs>, "kai.scheduler/"},
    {"BindRequest", add_to<project_bind_request, &World::kai, &KaiWorld::bind_requests>},
    {"Deployment", add_to<project_deployment, &World::kai, &KaiWorld::deployments>},
    {"RuntimeClass", add_to<project_runtime_class, &World::kai, &KaiWorld::runtime_classes>},
    {"CustomResourceDefinition", add_to<project_kai_schema, &World::kai, &KaiWorld::schemas>},
};

class Loader {
 public:
  // `settings`: whose DaemonSets are believed; null: all.
  Loader(WallTime now, const PlannerSettings* settings) : now_(now), settings_(settings) {}

  // Adds what is wrong to problems().
  void add_file(const ManifestFile& file) {
    const std::string_view text = without_mark(file.text);
    const auto first = text.find_first_not_of(" \t\r\n");
    // JSON is parsed as JSON: that is faster, and YAML reads some escapes and characters differently.
    if (first != std::string_view::npos && text[first] == '{' && Json::accept(text.begin(), text.end())) {
      const std::size_t before = problems_.size();
      add_json(file.name, text);
      if (problems_.size() == before) return;
      // Once more for the places, which only YAML's parser knows.
      Loader placed(now_, settings_);
      placed.add_yaml(file);
      if (placed.problems_.empty()) return;
      problems_.resize(before);
      for (std::string& problem : placed.problems_) problems_.push_back(std::move(problem));
      return;
    }
    add_yaml(file);
  }

  // What lint has read already.
  void add_object(const ManifestObject& object) {
    if (auto added = add_text(object.where, object.kind, object.api_version, object.name, object.json); !added)
      problems_.push_back(fmt::format("{}: {}", object.where, added.error().message));
  }

  [[nodiscard]] std::size_t problem_count() const { return problems_.size(); }

  // Adds what is wrong, a line each.
  void report(std::vector<std::string>& out) const {
    for (const std::string& problem : problems_) out.push_back(shown_message(problem));
  }

  LoadedManifests finish() {
    for (const Ignored& kind : ignored_) {
      const std::string more = kind.count == 1 ? "" : fmt::format(" ({} objects)", kind.count);
      out_.ignored.push_back(fmt::format("{}: kind {} is not read{}", kind.where, shown_value(kind.kind), more));
    }
    World& world = out_.world;
    const auto done = [](auto&... stores) { (stores.init_done(), ...); };
    done(world.nodes, world.daemonsets, world.configmaps, world.revisions, world.clusterpolicies, world.gpu_clusters);
    done(world.device_classes, world.policies, world.rollouts, world.partitioning.leases);
    done(world.kai.configs, world.kai.bind_requests, world.kai.deployments, world.kai.schemas);
    // Manifests without any might be only a part of the cluster.
    if (has_resource_slices_) world.resource_slices.init_done();
    if (has_runtime_classes_) world.kai.runtime_classes.init_done();
    world.partitioning.leases_known = true;
    world.kai.lookups.binder_lease = LookupResults::Lease{one_look(now_), false, {}, {}};
    place_config_maps();
    if (settings_ != nullptr) keep_trusted_daemonsets(world, *settings_);
    for (const std::string& pod : claiming_pods_) (void)pods_.add(claims_.without_other_claims(pod)).has_value();
    out_.unstarted = pods_.take_unstarted();
    pods_.place(world, out_.consumers, now_);
    return std::move(out_);
  }

 private:
  void add_json(const std::string& file, std::string_view text) {
    int index = 0;
    const auto list = list_kind_of(text);
    if (!list) {
      Json document = Json::parse(text.begin(), text.end(), nullptr, false);
      return add_json_document(file + "#0", document);
    }
    const std::string kind = list->substr(0, list->size() - 4);
    const Json root = parse_list(text, [&](Json& item) {
      const std::string where = fmt::format("{}#{}", file, index++);
      if (!item.is_object()) {
        problems_.push_back(where + ": items must be objects");
        return;
      }
      const std::string own = text_at(item, "kind");
      add_json_object(where, own.empty() ? kind : own, item);
    });
    const auto items = root.find("items");
    if (items != root.end() && !items->is_array() && !items->is_null())
      problems_.push_back(fmt::format("{}: items of a {} must be a list", file, *list));
  }

  void add_json_document(const std::string& where, Json& document) {
    const std::string kind = text_at(document, "kind");
    const auto items = document.find("items");
    const bool is_list = kind.ends_with("List") && items != document.end() && !items->is_null();
    if (!kind.empty() && !is_list) return add_json_object(where, kind, document);
    problems_.push_back(fmt::format("{}: {}", where, is_list ? "items must be a list" : kKindMissing));
  }

  void add_json_object(const std::string& where, const std::string& kind, Json& object) {
    if (auto added = add(where, kind, object); !added)
      problems_.push_back(fmt::format("{}: {}", where, added.error().message));
  }

  void add_yaml(const ManifestFile& file) {
    const YamlLimits limits{.bytes = kMaxBytes};
    const std::optional<std::string> respelt = json_for_yaml(file.text);
    const std::string_view text = respelt ? std::string_view(*respelt) : std::string_view(file.text);
    YamlStream stream(text, limits);
    const auto list = list_kind_of(text);
    YamlItem item;
    if (list) {
      item = [&, seen = 0](const YamlNode& node) mutable {
        const int index = seen++;
        if (problems_.size() < kMostProblems) add_node(file.name, index, node, *list);
      };
    }
    int index = 0;
    while (const auto document = stream.next(item)) {
      if (document->root != nullptr) add_node(file.name, index, *document->root, {}, true);
      ++index;
    }
    if (const auto& error = stream.error())
      problems_.push_back(fmt::format("{}:{}:{}: {}", file.name, error->at.line, error->at.column, error->message));
  }

  void refuse(const std::string& file, Position at, const std::string& message) {
    problems_.push_back(fmt::format("{}:{}:{}: {}", file, at.line, at.column, message));
  }

  // `document`: a whole document, which can also be a List (with the items that have not been read one by one).
  void add_node(const std::string& file, int index, const YamlNode& node, std::string_view list_kind,
                bool document = false) {
    std::vector<Diagnostic> diagnostics;
    const DocumentValue value = to_document_value(node, DecodeTarget::object, diagnostics);
    const auto wrong = std::ranges::find(diagnostics, Severity::error, &Diagnostic::severity);
    if (wrong != diagnostics.end()) return refuse(file, wrong->at, wrong->message);
    if (document && value.is_null()) return;
    if (!value.is_object())
      return refuse(file, value.at, "a manifest must be an object with a kind, found " + found_there(value));
    const DocumentValue* kind = value.find("kind");
    const std::string name = document ? std::string(value.string_at("kind")) : item_kind(value, list_kind);
    if (name.empty()) {
      const bool there = kind != nullptr && !kind->is_null();
      if (there) return refuse(file, kind->at, fmt::format("kind must be a string, found {}", found_there(*kind)));
      return refuse(file, value.at, std::string(kKindMissing));
    }
    const DocumentValue* items = value.find("items");
    if (document && name.ends_with("List") && items != nullptr && !items->is_null()) {
      if (!items->is_array()) {
        return refuse(file, items->at,
                      fmt::format("items of a {} must be a list, found {}", name, found_there(*items)));
      }
      for (const DocumentValue& item : items->items) add_value(file, index, item_kind(item, name), item);
      return;
    }
    add_value(file, index, name, value);
  }

  void add_value(const std::string& file, int index, const std::string& kind, const DocumentValue& value) {
    if (!value.is_object()) return refuse(file, value.at, "items must be objects, found " + found_there(value));
    if (kind.empty()) return refuse(file, value.at, std::string(kKindMissing));
    Json object = to_json(value);
    if (auto added = add(fmt::format("{}#{}", file, index), kind, object); !added) {
      const ManifestProblem problem = locate(added.error(), value);
      refuse(file, problem.at, problem.message);
    }
  }

  k8s::Result<void> add(const std::string& where, const std::string& kind, Json& object) {
    fill_metadata(kind, object);
    return add_text(where, kind, text_at(object, "apiVersion"), text_at(object["metadata"], "name"), dump(object));
  }

  k8s::Result<void> add_text(std::string_view where, std::string_view kind, std::string_view api_version,
                             std::string_view name, std::string_view text) {
    World& world = out_.world;
    const auto* known = std::ranges::find_if(kKindsOfObjects, [&](const KindOfObject& each) {
      return each.name == kind && api_version.starts_with(each.group);
    });
    const bool is_known = known != std::end(kKindsOfObjects);
    // The kind is served even if no object of it exists.
    const bool our_crd = kind == "CustomResourceDefinition" && name == "sharingpolicies.gpusharing.dev";
    if (our_crd || kind == "SharingPolicy" || kind == "SharingRollout") world.policies_served = true;
    // Manifests name objects, not APIs: where one of KAI's kinds occurs, both are served.
    if (is_known && (kind == "Config" || kind == "BindRequest"))
      world.kai.configs_served = world.kai.bind_requests_served = true;
    has_resource_slices_ = has_resource_slices_ || kind == "ResourceSlice";
    has_runtime_classes_ = has_runtime_classes_ || kind == "RuntimeClass";
    if (kind == "Lease") out_.leases.emplace_back(text);
    if (PodClaims::reads(kind)) claims_.add(kind, text);
    if (kind == "Pod") return add_pod(text);
    if (!is_known && !PodClaims::reads(kind)) note_ignored(where, kind);
    const bool keeps = is_known && (known->only.empty() || known->only == name);
    return keeps ? known->add(world, text) : k8s::Result<void>();
  }

  // One with claims is added when all claims are known.
  k8s::Result<void> add_pod(std::string_view text) {
    if (text.find("\"resourceClaims\"") == std::string_view::npos) return pods_.add(text);
    ClusterPods alone;
    k8s::Result<void> read = alone.add(text);
    if (read) claiming_pods_.emplace_back(text);
    return read;
  }

  void note_ignored(std::string_view where, std::string_view kind) {
    const auto known = std::ranges::find(ignored_, kind, &Ignored::kind);
    if (known != ignored_.end())
      ++known->count;
    else
      ignored_.push_back({std::string(kind), std::string(where), 1});
  }

  // The manifests are the whole cluster: so the consumers' ConfigMaps are also known.
  void place_config_maps() {
    KaiWorld& kai = out_.world.kai;
    for (const auto& [key, config_map] : out_.world.configmaps.all()) {
      const auto devices = key_text(config_map.get(), kai::kVisibleDevices);
      if (!devices) continue;
      LookupResults::Devices& found = kai.lookups.config_maps[key];
      found = {one_look(now_), true, *devices, {}};
      for (const k8s::OwnerReference& owner : config_map->meta.owners) found.owners.push_back(owner.uid);
    }
  }

  // Objects of a kind that is not read, by their first one: a dump has hundreds of some kinds.
  struct Ignored {
    std::string kind;
    std::string where;
    std::size_t count = 0;
  };

  WallTime now_;
  const PlannerSettings* settings_;
  LoadedManifests out_;
  std::vector<std::string> problems_;
  std::vector<Ignored> ignored_;
  ClusterPods pods_;
  PodClaims claims_;
  std::vector<std::string> claiming_pods_;
  bool has_resource_slices_ = false;
  bool has_runtime_classes_ = false;
};

}  // namespace

LoadedManifests load_readable_objects(const std::vector<ManifestObject>& objects, WallTime now,
                                      std::vector<std::string>& problems) {
  Loader loader(now, nullptr);
  for (const ManifestObject& object : objects) loader.add_object(object);
  loader.report(problems);
  return loader.finish();
}

k8s::Result<LoadedManifests> load_manifests(const std::vector<ManifestFile>& files, WallTime now,
                                            const PlannerSettings& settings) {
  Loader loader(now, &settings);
  for (const ManifestFile& file : files) {
    loader.add_file(file);
    if (loader.problem_count() >= kMostProblems) break;
  }
  std::vector<std::string> problems;
  loader.report(problems);
  if (problems.empty()) return loader.finish();
  const auto last = problems.begin() + static_cast<std::ptrdiff_t>(std::min(problems.size(), kMostProblems));
  return k8s::fail(k8s::Reason::decode, fmt::format("{}", fmt::join(problems.begin(), last, "\n")));
}

k8s::Result<std::string> yaml_to_json(std::string_view text) {
  const YamlLimits limits{.bytes = kMaxBytes};
  YamlStream stream(text, limits);
  auto document = stream.next();
  if (const auto& error = stream.error()) {
    return k8s::fail(k8s::Reason::decode,
                     fmt::format("line {}, column {}: {}", error->at.line, error->at.column, error->message));
  }
  if (!document || document->root == nullptr) return std::string("null");
  std::vector<Diagnostic> diagnostics;
  const DocumentValue value = to_document_value(*document->root, DecodeTarget::none, diagnostics);
  const auto wrong = std::ranges::find(diagnostics, Severity::error, &Diagnostic::severity);
  if (wrong != diagnostics.end())
    return k8s::fail(k8s::Reason::decode, fmt::format("line {}: {}", wrong->at.line, wrong->message));
  return dump(to_json(value));
}

}  // namespace gso
