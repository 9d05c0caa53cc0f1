// The printers of `kubectl get`, after k8s.io/kubernetes' pkg/printers/internalversion.
#include "tests/sim/apiserver/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/sim/apiserver/json_path.h"

namespace gso::sim {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kNone = "<none>";

std::string text(const json& object, std::initializer_list<const char*> path, std::string fallback = "") {
  const json* at = &object;
  for (const char* member : path) {
    if (!at->is_object() || !at->contains(member)) return fallback;
    at = &(*at)[member];
  }
  return at->is_string() ? at->get<std::string>() : at->is_null() ? fallback : at->dump();
}

std::int64_t number(const json& object, std::initializer_list<const char*> path) {
  return std::atoll(text(object, path, "0").c_str());
}

std::string age(const std::string& since, k8s::WallTime now) {
  const auto time = k8s::parse_rfc3339(since);
  return time ? human_duration(now - *time) : "<unknown>";
}

std::string age_of(const json& object, k8s::WallTime now) {
  return age(text(object, {"metadata", "creationTimestamp"}), now);
}

std::string joined_map(const json& map) {
  if (!map.is_object() || map.empty()) return kNone;
  std::vector<std::string> parts;
  for (const auto& [key, value] : map.items()) parts.push_back(fmt::format("{}={}", key, value.get<std::string>()));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string selector_text(const json& selector) {
  std::vector<std::string> parts;
  if (const json labels = selector.value("matchLabels", json::object()); !labels.empty())
    parts.push_back(joined_map(labels));
  const json expressions = selector.value("matchExpressions", json::array());
  for (const auto& e : expressions) {
    parts.push_back(fmt::format("{} {} ({})", e.value("key", ""), e.value("operator", ""),
                                fmt::join(e.value("values", std::vector<std::string>()), ",")));
  }
  return parts.empty() ? kNone : fmt::format("{}", fmt::join(parts, ","));
}

std::string condition_cell(const json& object, const char* type) {
  const json conditions = object.value("status", json::object()).value("conditions", json::array());
  for (const auto& c : conditions)
    if (c.value("type", "") == type) return c.value("status", "");
  return "";
}

json node_cells(const json& node, k8s::WallTime now) {
  std::string status = condition_cell(node, "Ready") == "True" ? "Ready"
                       : condition_cell(node, "Ready").empty() ? "Unknown"
                                                               : "NotReady";
  if (node["spec"].value("unschedulable", false)) status += ",SchedulingDisabled";
  std::set<std::string> roles;
  const json labels = node["metadata"].value("labels", json::object());
  for (const auto& [key, value] : labels.items()) {
    if (key.starts_with("node-role.kubernetes.io/")) roles.insert(key.substr(24));
    if (key == "kubernetes.io/role") roles.insert(value.get<std::string>());
  }
  std::map<std::string, std::string> addresses;
  const json list = node["status"].value("addresses", json::array());
  for (const auto& a : list) addresses.emplace(a.value("type", ""), a.value("address", ""));
  const auto address = [&](const char* type) {
    return addresses.contains(type) ? addresses[type] : std::string(kNone);
  };
  const auto info = [&](const char* what) {
    const std::string value = text(node, {"status", "nodeInfo", what});
    return value.empty() ? "<unknown>" : value;
  };
  return {text(node, {"metadata", "name"}),
          status,
          roles.empty() ? kNone : fmt::format("{}", fmt::join(roles, ",")),
          age_of(node, now),
          text(node, {"status", "nodeInfo", "kubeletVersion"}),
          address("InternalIP"),
          address("ExternalIP"),
          info("osImage"),
          info("kernelVersion"),
          info("containerRuntimeVersion")};
}

std::string pod_status(const json& pod, std::int64_t& ready, std::int64_t& restarts) {
  std::string reason = text(pod, {"status", "reason"}, text(pod, {"status", "phase"}));
  const json statuses = pod["status"].value("containerStatuses", json::array());
  for (const auto& c : statuses) {
    restarts += c.value("restartCount", 0);
    if (c.value("ready", false)) ++ready;
    const json state = c.value("state", json::object());
    if (const auto waiting = text(state, {"waiting", "reason"}); !waiting.empty())
      reason = waiting;
    else if (const auto ended = text(state, {"terminated", "reason"}); !ended.empty())
      reason = ended;
  }
  if (pod["metadata"].contains("deletionTimestamp"))
    reason = text(pod, {"status", "reason"}) == "NodeLost" ? "Unknown" : "Terminating";
  return reason;
}

json pod_cells(const json& pod, k8s::WallTime now) {
  std::int64_t ready = 0;
  std::int64_t restarts = 0;
  const std::string reason = pod_status(pod, ready, restarts);
  const auto or_none = [&](std::initializer_list<const char*> path) {
    const std::string value = text(pod, path);
    return value.empty() ? std::string(kNone) : value;
  };
  return {text(pod, {"metadata", "name"}),
          fmt::format("{}/{}", ready, pod["spec"].value("containers", json::array()).size()),
          reason,
          std::to_string(restarts),
          age_of(pod, now),
          or_none({"status", "podIP"}),
          or_none({"spec", "nodeName"}),
          or_none({"status", "nominatedNodeName"}),
          kNone};
}

// Names and images of a template's containers.
std::pair<std::string, std::string> containers_of(const json& object) {
  std::vector<std::string> names;
  std::vector<std::string> images;
  const json containers =
      object["spec"].value("template", json::object()).value("spec", json::object()).value("containers", json::array());
  for (const auto& c : containers) {
    names.push_back(c.value("name", ""));
    images.push_back(c.value("image", ""));
  }
  return {fmt::format("{}", fmt::join(names, ",")), fmt::format("{}", fmt::join(images, ","))};
}

json daemon_set_cells(const json& ds, k8s::WallTime now) {
  const auto [names, images] = containers_of(ds);
  const auto count = [&](const char* what) { return number(ds, {"status", what}); };
  const json pod = ds["spec"]["template"].value("spec", json::object());
  return {text(ds, {"metadata", "name"}),
          count("desiredNumberScheduled"),
          count("currentNumberScheduled"),
          count("numberReady"),
          count("updatedNumberScheduled"),
          count("numberAvailable"),
          joined_map(pod.value("nodeSelector", json())),
          age_of(ds, now),
          names,
          images,
          selector_text(ds["spec"].value("selector", json::object()))};
}

json deployment_cells(const json& d, k8s::WallTime now) {
  const auto [names, images] = containers_of(d);
  return {text(d, {"metadata", "name"}),
          fmt::format("{}/{}", number(d, {"status", "readyReplicas"}), number(d, {"spec", "replicas"})),
          number(d, {"status", "updatedReplicas"}),
          number(d, {"status", "availableReplicas"}),
          age_of(d, now),
          names,
          images,
          selector_text(d["spec"].value("selector", json::object()))};
}

std::string last_seen(const json& event, k8s::WallTime now) {
  for (const std::string& time :
       {text(event, {"series", "lastObservedTime"}), text(event, {"lastTimestamp"}),
        text(event, {"deprecatedLastTimestamp"}), text(event, {"eventTime"}), text(event, {"firstTimestamp"})}) {
    if (!time.empty()) return age(time, now);
  }
  return age_of(event, now);
}

json event_cells(const json& event, k8s::WallTime now) {
  const char* object = event.contains("regarding") ? "regarding" : "involvedObject";
  std::string kind = text(event, {object, "kind"});
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  const std::string source = text(event, {"source", "component"}, text(event, {"reportingController"}));
  const std::string reporter = source.empty() ? text(event, {"reportingComponent"}) : source;
  const std::string count = text(event, {"series", "count"}, text(event, {"count"}, "1"));
  const std::string first = text(event, {"firstTimestamp"}, text(event, {"eventTime"}));
  return {last_seen(event, now),
          text(event, {"type"}),
          text(event, {"reason"}),
          fmt::format("{}/{}", kind, text(event, {object, "name"})),
          text(event, {object, "fieldPath"}),
          reporter,
          text(event, {"message"}, text(event, {"note"})),
          first.empty() ? age_of(event, now) : age(first, now),
          std::atoll(count.c_str()),
          text(event, {"metadata", "name"})};
}

using Printer = std::function<json(const json&, k8s::WallTime)>;

struct KindTable {
  std::vector<Column> columns;
  Printer cells;
};

Column wide(const char* name, const char* type = "string") {
  return {name, type, "", 1, ""};
}
Column plain(const char* name, const char* type = "string") {
  return {name, type, "", 0, ""};
}

// "Name", one column for each path, "Age".
KindTable simple(std::vector<std::pair<const char*, std::vector<const char*>>> middle) {
  KindTable table{{plain("Name")}, nullptr};
  for (const auto& [name, path] : middle) table.columns.push_back(plain(name));
  table.columns.push_back(plain("Age"));
  table.cells = [middle](const json& object, k8s::WallTime now) {
    json cells = {text(object, {"metadata", "name"})};
    for (const auto& [name, path] : middle) {
      const json* at = &object;
      for (const char* member : path)
        at = at != nullptr && at->is_object() && at->contains(member) ? &(*at)[member] : nullptr;
      const bool counted = std::string_view(name) == "Data";
      if (counted)
        cells.push_back(at == nullptr ? std::size_t{0} : at->size());
      else
        cells.push_back(at == nullptr || at->is_null() ? json(std::string_view(name) == "Holder" ? "" : "N/A") : *at);
    }
    cells.push_back(age_of(object, now));
    return cells;
  };
  return table;
}

const std::map<std::string, KindTable, std::less<>>& tables() {
  static const std::map<std::string, KindTable, std::less<>> all = {
      {"Node",
       {{plain("Name"), plain("Status"), plain("Roles"), plain("Age"), plain("Version"), wide("Internal-IP"),
         wide("External-IP"), wide("OS-Image"), wide("Kernel-Version"), wide("Container-Runtime")},
        node_cells}},
      {"Pod",
       {{plain("Name"), plain("Ready"), plain("Status"), plain("Restarts"), plain("Age"), wide("IP"), wide("Node"),
         wide("Nominated Node"), wide("Readiness Gates")},
        pod_cells}},
      {"DaemonSet",
       {{plain("Name"), plain("Desired", "integer"), plain("Current", "integer"), plain("Ready", "integer"),
         plain("Up-to-date", "integer"), plain("Available", "integer"), plain("Node Selector"), plain("Age"),
         wide("Containers"), wide("Images"), wide("Selector")},
        daemon_set_cells}},
      {"Deployment",
       {{plain("Name"), plain("Ready"), plain("Up-to-date", "integer"), plain("Available", "integer"), plain("Age"),
         wide("Containers"), wide("Images"), wide("Selector")},
        deployment_cells}},
      {"Event",
       {{plain("Last Seen"), plain("Type"), plain("Reason"), plain("Object"), wide("Subobject"), wide("Source"),
         plain("Message"), wide("First Seen"), wide("Count", "integer"), wide("Name")},
        event_cells}},
      {"ConfigMap", simple({{"Data", {"data"}}})},
      {"Secret", simple({{"Type", {"type"}}, {"Data", {"data"}}})},
      {"Namespace", simple({{"Status", {"status", "phase"}}})},
      {"Lease", simple({{"Holder", {"spec", "holderIdentity"}}})},
      {"Service", simple({{"Type", {"spec", "type"}}, {"Cluster-IP", {"spec", "clusterIP"}}})},
      {"ReplicaSet", simple({{"Desired", {"spec", "replicas"}}, {"Current", {"status", "replicas"}}})},
      {"ControllerRevision", simple({{"Revision", {"revision"}}})},
      {"PodDisruptionBudget", simple({{"Min Available", {"spec", "minAvailable"}},
                                      {"Max Unavailable", {"spec", "maxUnavailable"}},
                                      {"Allowed Disruptions", {"status", "disruptionsAllowed"}}})},
      {"RuntimeClass", simple({{"Handler", {"handler"}}})},
      {"PriorityClass", simple({{"Value", {"value"}}})},
  };
  return all;
}

}  // namespace

std::string human_duration(k8s::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  const auto minutes = seconds / 60;
  const auto with = [](auto big, const char* unit, auto small, const char* small_unit) {
    return small == 0 ? fmt::format("{}{}", big, unit) : fmt::format("{}{}{}{}", big, unit, small, small_unit);
  };
  if (minutes < 10) return with(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return fmt::format("{}m", minutes);
  const auto hours = minutes / 60;
  if (hours < 8) return with(hours, "h", minutes % 60, "m");
  if (hours < 48) return fmt::format("{}h", hours);
  const auto days = hours / 24;
  if (hours < 24 * 8) return with(days, "d", hours % 24, "h");
  if (days < 365 * 2) return fmt::format("{}d", days);
  if (days < 365 * 8) return with(days / 365, "y", days % 365, "d");
  return fmt::format("{}y", days / 365);
}

std::vector<Column> builtin_columns(std::string_view kind) {
  auto it = tables().find(kind);
  if (it != tables().end()) return it->second.columns;
  return {plain("Name"), plain("Age")};
}

json table_cells(const Resource& resource, const json& object, k8s::WallTime now) {
  if (!resource.custom) {
    auto it = tables().find(resource.kind);
    if (it != tables().end()) return it->second.cells(object, now);
    return {text(object, {"metadata", "name"}), age_of(object, now)};
  }
  json cells = json::array();
  for (const Column& column : resource.columns) {
    if (column.json_path.empty()) {
      cells.push_back(text(object, {"metadata", "name"}));
      continue;
    }
    json value = json_path_value(object, column.json_path);
    if (column.type == "date" && value.is_string())
      value = age(value.get<std::string>(), now);
    else if (column.type == "string" && !value.is_string() && !value.is_null())
      value = value.dump();
    cells.push_back(std::move(value));
  }
  return cells;
}

}  // namespace gso::sim
