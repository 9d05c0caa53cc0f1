#include "reconcilers/node/mps_daemon_change.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {

namespace {

using stored::field;
using stored::When;

constexpr stored::Field<MpsDaemonChange> kDaemonFields[] = {
    field<MpsDaemonChange, &MpsDaemonChange::daemonset>("daemonSet", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::to>("to", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::begun>("begun", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::cordoned>("cordoned", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::deferred_until>("deferredUntil", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::failed>("failed", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::retry>("retry", When::if_set)};

}  // namespace

std::string print_mps_daemon_change(const MpsDaemonChange& change) {
  return stored::print_versioned<MpsDaemonChange, nlohmann::ordered_json>(change, kDaemonFields);
}

k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text) {
  MpsDaemonChange out;
  std::string problem = stored::read_versioned<MpsDaemonChange>(text, kDaemonFields, out);
  if (problem.empty() && (out.daemonset.empty() || out.to.empty())) problem = "daemonSet and to must be set";
  if (problem.empty()) return out;
  return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kMpsDaemonChangeAnnotation, problem));
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
