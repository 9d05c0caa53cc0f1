#include "reconcilers/node/mps_daemon_change.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

std::string print_mps_daemon_change(const MpsDaemonChange& change) {
  OrderedJson out = {{"v", MpsDaemonChange::kVersion},
                     {"daemonSet", change.daemonset},
                     {"to", change.to},
                     {"begun", k8s::format_time(change.begun)}};
  if (change.cordoned) out["cordoned"] = true;
  if (change.deferred_until) out["deferredUntil"] = k8s::format_time(*change.deferred_until);
  if (change.failed) out["failed"] = true;
  if (!change.retry.empty()) out["retry"] = change.retry;
  return dump(out);
}

k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text) {
  const auto bad = [](std::string_view what) {
    return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kMpsDaemonChangeAnnotation, what));
  };
  const OrderedJson root = OrderedJson::parse(text, nullptr, false);
  if (!root.is_object()) return bad("must be a JSON object");
  if (number_at(root, "v") != MpsDaemonChange::kVersion) return bad("v must be 1");
  const auto begun = k8s::parse_rfc3339(text_at(root, "begun"));
  MpsDaemonChange out;
  out.daemonset = text_at(root, "daemonSet");
  out.to = text_at(root, "to");
  if (out.daemonset.empty() || out.to.empty() || !begun) return bad("daemonSet, to and begun (a time) must be set");
  out.begun = *begun;
  for (const char* flag : {"cordoned", "failed"}) {
    const OrderedJson* value = member_at(root, flag);
    if (value != nullptr && !value->is_boolean()) return bad(fmt::format("{} must be true or false", flag));
  }
  out.cordoned = flag_at(root, "cordoned");
  out.failed = flag_at(root, "failed");
  out.retry = text_at(root, "retry");
  out.deferred_until = k8s::parse_rfc3339(text_at(root, "deferredUntil"));
  if (member_at(root, "deferredUntil") != nullptr && !out.deferred_until) return bad("deferredUntil must be a time");
  return out;
}

MpsDaemonChangeOnNode mps_daemon_change_on(const Node& node) {
  const auto text = node.meta.annotations.get(kMpsDaemonChangeAnnotation);
  if (!text) return {};
  k8s::Result<MpsDaemonChange> parsed = parse_mps_daemon_change(*text);
  MpsDaemonChangeOnNode out;
  if (!parsed) {
    out.problem = parsed.error().message;
  } else if (parsed->deferred_until) {
    out.deferred = std::move(*parsed);
  } else {
    out.change = std::move(*parsed);
  }
  return out;
}

std::string describe(const MpsDaemonChangeOnNode& found) {
  if (!found.problem.empty()) {
    return fmt::format("{}. Remove it once the node needs no change: kubectl annotate node NODE {}-", found.problem,
                       kMpsDaemonChangeAnnotation);
  }
  if (!found.change) return {};
  return fmt::format("the standalone MPS daemon of DaemonSet {} is replaced on the node", found.change->daemonset);
}

}  // namespace gso
