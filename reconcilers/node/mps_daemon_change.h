// The replacement of a node's standalone MPS daemon: one annotation, gpusharing.dev/mps-daemon-change, written before
// the node is drained and removed once the new daemon is Ready. While a node has it, the operator changes nothing else
// there (foreign_holder()).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/objects.h"

namespace gso {

struct MpsDaemonChange {
  static constexpr int kVersion = 1;
  std::string daemonset;  // "namespace/name"
  std::string to;         // controller-revision-hash of the template that the node should run.
  k8s::WallTime begun{};  // When it was written.
  bool cordoned = false;  // By the operator.
  // The replacement was backed out, because clients did not end in time or a person uncordoned the node: it does not
  // begin again before this time. Such a node is not in a change.
  std::optional<k8s::WallTime> deferred_until;
  // The daemon of the template `to` was not Ready in time: the node waits for a newer template, or for a retry.
  bool failed = false;
  std::string retry;  // gpusharing.dev/retry of the policy at the failure or the deferral; another value ends it.
  friend bool operator==(const MpsDaemonChange&, const MpsDaemonChange&) = default;
};
[[nodiscard]] std::string print_mps_daemon_change(const MpsDaemonChange& change);
// Errors (`decode`) name what is wrong.
[[nodiscard]] k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text);

// Of a node: in progress, deferred, or why the annotation cannot be read. At most one of the three is set.
struct MpsDaemonChangeOnNode {
  std::optional<MpsDaemonChange> change;
  std::optional<MpsDaemonChange> deferred;
  std::string problem;
};
[[nodiscard]] MpsDaemonChangeOnNode mps_daemon_change_on(const Node& node);
// For people.
[[nodiscard]] std::string describe(const MpsDaemonChangeOnNode& found);

}  // namespace gso
