// `rollout status|history|start|pause|resume|approve|abort|undo|diff`: what an on-call engineer does with
// SharingRollouts, by their own kubeconfig. Each write is one switch that the operator reads: nothing here touches a
// Node or a Pod.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <optional>
#include <string>

#include "controller/commands/shared/command.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct RolloutOptions {
  enum class Verb { status, history, start, pause, resume, approve, abort, undo, diff } verb = Verb::status;
  std::string name;               // Of a SharingRollout, or policy/NAME; `start`: of a SharingPolicy. May be empty.
  bool all = false;               // Every rollout that the verb fits.
  bool adopt = false;             // start: also drift that was there before the operator.
  std::string to_revision;        // undo: back to this one.
  bool write_config_map = false;  // undo: put the text into the ConfigMap.
  bool dry_run = false;           // start, undo: show what they would do.
  std::string file;               // diff: a ConfigMap or a profile; "-" is stdin.
  std::string key;                // diff: the key that a profile is for.
  std::string lease_name = Options().lease_name;  // Of the operator.
  bool watch = false;                             // status: a live view until SIGINT.
  bool wait = false;                              // status: until the rollouts are complete or stopped.
  std::string timeout_text;                       // As it was given.
  std::optional<Duration> timeout;                // Of the wait; nullopt: forever.
  NodeFilterFlags only;                           // status --watch: the nodes of the tree.
  bool json = false;
};

// The verb on a given client. Exit status: 0 done, 1 a rollout that is stopped (status), an owner that forbids it
// (undo), or a text that is invalid (diff), 2 nothing that fits, unreadable input or an unanswered request.
boost::asio::awaitable<int> rollout_command(k8s::ApiClient* client, k8s::Clock* clock, RolloutOptions rollout,
                                            PlannerSettings settings, std::string input, std::ostream* out,
                                            std::ostream* err);

// The same with the connection of `options`.
[[nodiscard]] int run_rollout(const RolloutOptions& rollout, const Options& options, std::istream& in,
                              std::ostream& out, std::ostream& err);

// What `rollout status` prints: each rollout that is in progress or stopped, what waits, and what to type; without the
// CRDs that they are missing (no JSON). Empty: whether there are rollouts is unknown, because they cannot be read.
[[nodiscard]] std::string rollout_status_text(const ClusterView& view, const PlannerSettings& settings,
                                              k8s::Clock* clock, bool json);

// `rollout` with its verbs, and `diff`, which is `rollout diff` by a shorter name.
[[nodiscard]] Subcommand make_rollout_command();
[[nodiscard]] Subcommand make_diff_command();

}  // namespace gso
