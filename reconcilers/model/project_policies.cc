// ClusterPolicy, SharingPolicy and SharingRollout: JSON -> projected value.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Their values are switches and times. They are copied to nodes and into the record, which have room for no more.
void shorten_annotations(k8s::ObjectMeta& meta) {
  constexpr std::size_t kMostBytes = 256;
  const k8s::StringMap all = meta.annotations;
  for (const auto& [key, value] : all) {
    if (value.view().size() > kMostBytes) meta.annotations.set(key.view(), first_bytes(value.view(), kMostBytes));
  }
}

// Keys sorted, no blanks: equal statuses give equal text, independent of the server's order.
bool canonical(Fields& fields, Value value, std::string_view field, std::string& out) {
  simdjson::ondemand::object object;
  std::string_view raw;
  if (value.get_object().get(object) != simdjson::SUCCESS || object.raw_json().get(raw) != simdjson::SUCCESS) {
    return fields.fail(field, "an object");
  }
  const auto parsed = nlohmann::json::parse(raw, nullptr, false);
  if (parsed.is_discarded()) return fields.fail(field, "valid JSON");
  out = dump(parsed);
  return true;
}

// One of a closed list of words; the message lists them.
template <class T, std::size_t N>
bool choice(Fields& fields, Value value, std::string_view field, const PolicyWord<T> (&choices)[N], T& out) {
  std::string_view text;
  if (!fields.view(value, field, text)) return false;
  if (text.empty()) return true;
  std::string wanted;
  for (const auto& candidate : choices) {
    if (candidate.text == text) {
      out = candidate.value;
      return true;
    }
    wanted += fmt::format("{}{}", wanted.empty() ? "one of " : ", ", candidate.text);
  }
  return fields.fail(field, wanted);
}

bool duration(Fields& fields, Value value, std::string_view field, k8s::Duration& out) {
  std::string_view text;
  if (!fields.view(value, field, text)) return false;
  if (text.empty()) return true;
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < k8s::Duration::zero()) return fields.fail(field, "a duration such as 90s or 1h30m");
  out = *parsed;
  return true;
}

// The CRD refuses a negative number, which is also refused where no API server has seen the policy. 0 starts no node.
bool count(Fields& fields, Value value, std::string_view field, std::string_view expected, std::int64_t& out) {
  if (!fields.number(value, field, out)) return false;
  return out >= 0 || fields.fail(field, expected);
}

bool int_or_percent(Fields& fields, Value value, std::string_view field, IntOrPercent& out) {
  constexpr std::string_view kExpected = "a count of at least 1, or a percentage from 1% to 100%";
  simdjson::ondemand::json_type type{};
  if (auto code = value.type().get(type); code != simdjson::SUCCESS) return fields.invalid_json(field, code);
  if (type == simdjson::ondemand::json_type::number) {
    out = {0, false};
    return count(fields, value, field, kExpected, out.value);
  }
  std::string_view text;
  if (!fields.view(value, field, text)) return false;
  if (text.empty()) return true;
  const auto parsed = IntOrPercent::parse(text);
  if (!parsed) return fields.fail(field, kExpected);
  out = *parsed;
  return true;
}

bool read_expression(Fields& fields, Value value, k8s::LabelRequirement& out) {
  return fields.object(value, "matchExpressions", [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, "matchExpressions.key", out.key);
    if (key == "operator") {
      std::string_view text;
      if (!fields.view(inner, "matchExpressions.operator", text)) return false;
      const auto op = k8s::parse_label_operator(text);
      if (!op) return fields.fail("matchExpressions.operator", "one of In, NotIn, Exists, DoesNotExist");
      out.op = *op;
      return true;
    }
    if (key == "values") {
      return fields.array(inner, "matchExpressions.values", [&](Value item) {
        return fields.text(item, "matchExpressions.values", out.values.emplace_back());
      });
    }
    return true;
  });
}

bool read_selector(Fields& fields, Value value, k8s::LabelSelector& out) {
  return fields.object(value, "spec.nodeSelector", [&](std::string_view key, Value inner) {
    if (key == "matchLabels") return fields.string_map(inner, "spec.nodeSelector.matchLabels", out.match_labels);
    if (key == "matchExpressions") {
      return fields.array(inner, "spec.nodeSelector.matchExpressions", [&](Value item) {
        return read_expression(fields, item, out.match_expressions.emplace_back());
      });
    }
    return true;
  });
}

bool read_window(Fields& fields, Value value, MaintenanceWindow& out) {
  return fields.object(value, "spec.rollout.maintenanceWindows", [&](std::string_view key, Value inner) {
    if (key == "cron") return fields.text(inner, "spec.rollout.maintenanceWindows.cron", out.cron);
    if (key == "duration") return duration(fields, inner, "spec.rollout.maintenanceWindows.duration", out.duration);
    if (key == "timeZone") return fields.text(inner, "spec.rollout.maintenanceWindows.timeZone", out.time_zone);
    return true;
  });
}

bool read_rollout_spec(Fields& fields, Value value, RolloutSpec& out) {
  return fields.object(value, "spec.rollout", [&](std::string_view key, Value inner) {
    if (key == "mechanism") return choice(fields, inner, "spec.rollout.mechanism", kMechanismWords, out.mechanism);
    if (key == "maxUnavailable")
      return int_or_percent(fields, inner, "spec.rollout.maxUnavailable", out.max_unavailable);
    if (key == "maxUnavailablePerGroup") {
      return int_or_percent(fields, inner, "spec.rollout.maxUnavailablePerGroup", out.max_unavailable_per_group);
    }
    if (key == "canary") {
      return fields.object(inner, "spec.rollout.canary", [&](std::string_view field, Value item) {
        if (field == "nodesPerGroup") {
          return count(fields, item, "spec.rollout.canary.nodesPerGroup", "a whole number from 0 to 1000",
                       out.canary_nodes_per_group);
        }
        if (field == "soak") return duration(fields, item, "spec.rollout.canary.soak", out.canary_soak);
        return true;
      });
    }
    if (key == "workloads") return choice(fields, inner, "spec.rollout.workloads", kWorkloadModeWords, out.workloads);
    if (key == "cordon") return fields.flag(inner, "spec.rollout.cordon", out.cordon);
    if (key == "evictBarePods") return fields.flag(inner, "spec.rollout.evictBarePods", out.evict_bare_pods);
    if (key == "idleTimeout") return duration(fields, inner, "spec.rollout.idleTimeout", out.idle_timeout);
    if (key == "verifyTimeout") return duration(fields, inner, "spec.rollout.verifyTimeout", out.verify_timeout);
    if (key == "maxFailures") {
      return count(fields, inner, "spec.rollout.maxFailures", "a whole number from 1 to 10000", out.max_failures);
    }
    if (key == "onFailure") return choice(fields, inner, "spec.rollout.onFailure", kOnFailureWords, out.on_failure);
    if (key == "maintenanceWindows") {
      return fields.array(inner, "spec.rollout.maintenanceWindows",
                          [&](Value item) { return read_window(fields, item, out.windows.emplace_back()); });
    }
    if (key == "paused") return fields.flag(inner, "spec.rollout.paused", out.paused);
    return true;
  });
}

constexpr std::string_view kStrategies[] = {"none", "mps", "time-slicing"};

bool read_inline(Fields& fields, Value value, InlineProfile& out) {
  return fields.object(value, "spec.profile.inline", [&](std::string_view key, Value inner) {
    if (key == "strategy") {
      if (!fields.text(inner, "spec.profile.inline.strategy", out.strategy)) return false;
      const bool known = std::ranges::find(kStrategies, out.strategy) != std::end(kStrategies);
      return known || fields.fail("spec.profile.inline.strategy", "one of none, mps, time-slicing");
    }
    if (key == "replicas") return fields.number(inner, "spec.profile.inline.replicas", out.replicas);
    if (key == "renameByDefault") {
      return fields.flag(inner, "spec.profile.inline.renameByDefault", out.rename_by_default);
    }
    if (key == "resource") return fields.text(inner, "spec.profile.inline.resource", out.resource);
    if (key == "failRequestsGreaterThanOne") {
      return fields.flag(inner, "spec.profile.inline.failRequestsGreaterThanOne", out.fail_requests_greater_than_one);
    }
    return true;
  });
}

bool read_policy_spec(Fields& fields, Value value, SharingPolicy& out) {
  return fields.object(value, "spec", [&](std::string_view key, Value inner) {
    if (key == "nodeSelector") return read_selector(fields, inner, out.node_selector);
    if (key == "priority") return fields.number(inner, "spec.priority", out.priority);
    if (key == "mode") return choice(fields, inner, "spec.mode", kPolicyModeWords, out.mode);
    if (key == "takeover") return fields.flag(inner, "spec.takeover", out.takeover);
    if (key == "deletionPolicy")
      return choice(fields, inner, "spec.deletionPolicy", kDeletionPolicyWords, out.deletion_policy);
    if (key == "revisionHistoryLimit") {
      if (Fields::is_null(inner)) return true;
      return count(fields, inner, "spec.revisionHistoryLimit", "a whole number from 0 to 1000",
                   out.revision_history_limit.emplace());
    }
    if (key == "rollout") return read_rollout_spec(fields, inner, out.rollout);
    if (key == "profile") {
      return fields.object(inner, "spec.profile", [&](std::string_view field, Value item) {
        if (field == "configMapKey") return fields.text(item, "spec.profile.configMapKey", out.config_map_key);
        if (field == "inline" && !Fields::is_null(item)) return read_inline(fields, item, out.inline_profile.emplace());
        return true;
      });
    }
    return true;
  });
}

bool read_rollout_object(Fields& fields, Value value, SharingRollout& out) {
  return fields.object(value, "spec", [&](std::string_view key, Value inner) {
    if (key == "policy") return fields.text(inner, "spec.policy", out.policy);
    if (key == "configMap") return fields.text(inner, "spec.configMap", out.config_map);
    if (key == "daemonSet") {
      std::string daemonset;
      if (!fields.text(inner, "spec.daemonSet", daemonset)) return false;
      out.config_map = daemonset_subject(daemonset);
      return true;
    }
    if (key == "key") return fields.text(inner, "spec.key", out.key);
    if (key == "toRevision") return fields.text(inner, "spec.toRevision", out.to_revision);
    if (key == "profile") return fields.text(inner, "spec.profile", out.profile);
    if (key == "paused") return fields.flag(inner, "spec.paused", out.paused);
    if (key == "approved") return fields.flag(inner, "spec.approved", out.approved);
    if (key == "aborted") return fields.flag(inner, "spec.aborted", out.aborted);
    return true;
  });
}

bool read_clusterpolicy_spec(Fields& fields, Value value, ClusterPolicy& out) {
  return fields.object(value, "spec", [&](std::string_view key, Value inner) {
    if (key == "devicePlugin") {
      return fields.object(inner, "spec.devicePlugin", [&](std::string_view field, Value item) {
        if (field == "enabled") return fields.flag(item, "spec.devicePlugin.enabled", out.device_plugin_enabled);
        if (field != "config") return true;
        return fields.object(item, "spec.devicePlugin.config", [&](std::string_view name, Value text) {
          if (name == "name") return fields.text(text, "spec.devicePlugin.config.name", out.config_name);
          if (name == "default") return fields.text(text, "spec.devicePlugin.config.default", out.config_default);
          return true;
        });
      });
    }
    if (key == "mig") {
      return fields.object(inner, "spec.mig", [&](std::string_view field, Value text) {
        return field == "strategy" ? fields.text(text, "spec.mig.strategy", out.mig_strategy) : true;
      });
    }
    if (key == "daemonsets") {
      return fields.object(inner, "spec.daemonsets", [&](std::string_view field, Value item) {
        std::string_view text;
        if (field != "updateStrategy") return true;
        if (!fields.view(item, "spec.daemonsets.updateStrategy", text)) return false;
        out.on_delete = text == "OnDelete";
        return true;
      });
    }
    return true;
  });
}

}  // namespace

k8s::Result<ClusterPolicy> project_clusterpolicy(std::string_view text) {
  ClusterPolicy out;
  json::Document document("ClusterPolicy", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {}, out.meta);
    if (key == "spec") return read_clusterpolicy_spec(fields, value, out);
    if (key == "status") {
      return fields.object(value, "status", [&](std::string_view field, Value inner) {
        return field == "state" ? fields.text(inner, "status.state", out.state) : true;
      });
    }
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<GpuCluster> project_gpu_cluster(std::string_view text) {
  GpuCluster out;
  json::Document document("GPUCluster", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    return key == "metadata" ? json::read_meta(fields, value, {}, out.meta) : true;
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<DeviceClass> project_device_class(std::string_view text) {
  DeviceClass out;
  json::Document document("DeviceClass", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {.labels = false}, out.meta);
    if (key != "spec") return true;
    return fields.object(value, "spec", [&](std::string_view field, Value inner) {
      return field != "extendedResourceName" || fields.text(inner, "spec.extendedResourceName", out.extended_resource);
    });
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<ResourceSlice> project_resource_slice(std::string_view text) {
  ResourceSlice out;
  json::Document document("ResourceSlice", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {.labels = false}, out.meta);
    if (key != "spec") return true;
    return fields.object(value, "spec", [&](std::string_view field, Value inner) {
      if (field == "driver") return fields.text(inner, "spec.driver", out.driver);
      if (field == "nodeName") return fields.text(inner, "spec.nodeName", out.node);
      if (field == "allNodes") return fields.flag(inner, "spec.allNodes", out.all_nodes);
      if (field != "devices") return true;
      return fields.array(inner, "spec.devices", [&](Value) { return out.offers = true; });
    });
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<SharingPolicy> project_sharing_policy(std::string_view text) {
  SharingPolicy out;
  json::Document document("SharingPolicy", text);
  const json::MetaFilter filter{true, json::keeps_own_annotation};
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") {
      return json::read_meta(fields, value, filter, out.meta, [&](std::string_view field, Value inner) {
        if (field != "finalizers") return true;
        return fields.array(inner, "metadata.finalizers", [&](Value item) {
          return fields.text(item, "metadata.finalizers", out.finalizers.emplace_back());
        });
      });
    }
    if (key == "spec") return read_policy_spec(fields, value, out);
    if (key == "status") return canonical(fields, value, "status", out.status_json);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  shorten_annotations(out.meta);
  // Read again as a whole, because the record also keeps fields that this release does not know.
  const auto whole = nlohmann::json::parse(text, nullptr, false);
  const auto spec = whole.is_object() ? whole.find("spec") : whole.end();
  if (spec != whole.end() && spec->is_object()) {
    out.spec_json = dump(*spec);
  }
  return out;
}

k8s::Result<SharingRollout> project_sharing_rollout(std::string_view text) {
  SharingRollout out;
  json::Document document("SharingRollout", text);
  const json::MetaFilter filter{true, json::keeps_own_annotation};
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, out.meta);
    if (key == "spec") return read_rollout_object(fields, value, out);
    if (key == "status") return canonical(fields, value, "status", out.status_json);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  const auto status = nlohmann::json::parse(out.status_json, nullptr, false);
  if (status.is_object()) {
    if (auto phase = status.find("phase"); phase != status.end() && phase->is_string()) out.phase = *phase;
  }
  return out;
}

}  // namespace gso
