// `rollout status|history|start|pause|resume|approve|abort|undo|diff`: what an on-call engineer does with
// SharingRollouts, by their own kubeconfig. Each write is one switch that the operator reads: nothing here touches a
// Node or a Pod.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/commands/status_watch.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/operator_lease.h"
#include "k8sclient/api/client.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/report/report.h"

namespace gso {

struct RolloutOptions {
  enum class Verb { status, history, start, pause, resume, approve, abort, undo, diff } verb = Verb::status;
  std::string name{};             // Of a SharingRollout, or policy/NAME; `start`: of a SharingPolicy. May be empty.
  bool all = false;               // Every rollout that the verb fits.
  bool adopt = false;             // start: also drift that was there before the operator.
  std::string to_revision{};      // undo: back to this one.
  bool write_config_map = false;  // undo: put the text into the ConfigMap.
  bool dry_run = false;           // start, undo: show what they would do.
  std::string file{};             // diff: an object or a profile; "-" is stdin.
  std::string key{};              // diff: the key that a profile is for.
  std::string cluster_policy_patch{};             // diff: a merge patch of the ClusterPolicy.
  std::string lease_name = Options().lease_name;  // Of the operator.
  bool watch = false;                             // status: a live view until SIGINT.
  bool wait = false;                              // status: until the rollouts are complete or stopped.
  std::string timeout_text{};                     // As it was given.
  std::optional<Duration> timeout{};              // Of the wait; nullopt: forever.
  NodeFilterFlags only{};                         // status --watch: the nodes of the tree.
  bool json = false;
};

// The verb on a given client. Exit status: 0 done, 1 a rollout that is stopped (status), an owner that forbids it
// (undo), or a text that is invalid (diff), 2 nothing that fits, unreadable input or an unanswered request.
boost::asio::awaitable<int> rollout_command(k8s::ApiClient* client, k8s::Clock* clock, RolloutOptions rollout,
                                            PlannerSettings settings, std::string input, std::ostream* out,
                                            std::ostream* err);

// What `rollout status` prints: each rollout that is in progress or stopped, what waits, and what to type; without the
// CRDs that they are missing (no JSON). Empty: whether there are rollouts is unknown, because they cannot be read.
[[nodiscard]] std::string rollout_status_text(const ClusterView& view, const PlannerSettings& settings,
                                              k8s::Clock* clock, bool json);

// `rollout` with its verbs, and `diff`, which is `rollout diff` by a shorter name.
[[nodiscard]] Subcommand make_rollout_command();
[[nodiscard]] Subcommand make_diff_command();

// `status --watch` and `--wait`, in watch.cc. Exit status: 0 complete, 1 stopped, 2 the cluster cannot be read or an
// argument is wrong, 3 timed out; with --watch alone 0 when it is interrupted.
[[nodiscard]] int watch_rollouts(const RolloutOptions& rollout, const Options& options, std::ostream& out,
                                 std::ostream& err);

// The same, still without a client and a signal that stops it: a live tree, or without a screen a line for each change.
[[nodiscard]] FleetWatch watch_of_rollouts(const RolloutOptions& rollout, const NodeFilter& only,
                                           const PlannerSettings& settings);

// --- What all verbs share.

// As a person types it: "rollout pause"; "diff", which is a command of its own.
[[nodiscard]] std::string command_of(RolloutOptions::Verb verb);

// One run of a verb.
struct RolloutCall {
  k8s::ApiClient* client = nullptr;
  k8s::Clock* clock = nullptr;
  RolloutOptions options;
  PlannerSettings settings;
  std::string input{};  // The text of --file, or the patch.
  World world{};
  FleetIndex index{};                     // Of `world` as it was read: a preview changes the world, and not this.
  std::vector<std::string> incomplete{};  // What could not be read.
  OperatorPresence presence{};
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Writes "gpu-sharing-operator rollout pause: …" (or "diff:", which is a command of its own) and gives 2.
  int refuse(std::string_view why) const;
};

// A merge patch of a SharingRollout or SharingPolicy (resources::sharing_rollouts, …). False, and said, when it failed.
boost::asio::awaitable<bool> patch_sharing_object(RolloutCall* call, k8s::Gvr resource, std::string name,
                                                  std::string body);

// --- What `rollout status` and its like print of a FleetReport: text for people, lines for a log, and JSON. In
// report_text.cc.

// "40s", "2m", "3h12m", "6d3h", "30d": what people need of a duration.
[[nodiscard]] std::string about(k8s::Duration duration);
// "[######..................]"
[[nodiscard]] std::string progress_bar(std::int64_t done, std::int64_t total);
// "[####----] 7/12 up to date, 1 in progress, 4 pending, 0 blocked, 0 failed": progress_bar() and the counts. Nodes
// that failed come first: "[####----] 7/12 up to date, 1 failed, 1 in progress, 3 pending, 0 blocked".
[[nodiscard]] std::string counts_text(const RolloutFacts& facts);

// For people, line by line. Without an operator messages are the last that one wrote.
void print_report(const FleetReport& report, k8s::WallTime now, std::ostream& out);
// "policy default waits (OutsideWindow): …": in one line, also where it is one of many.
[[nodiscard]] std::string wait_line(const PolicyWait& wait);
// One line for each rollout in progress and each policy that waits without one, without times: what a log shows when it
// changes.
[[nodiscard]] std::vector<std::string> progress_lines(const FleetReport& report);
// "rollout x", "policy y", "all rollouts": what somebody waits for who has given that name.
[[nodiscard]] std::string waited_for(const std::string& name);

// Of the JSON documents (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
inline constexpr int kRolloutJsonVersion = 1;
[[nodiscard]] nlohmann::ordered_json rollout_json(const RolloutFacts& facts);
// `operator_field`: NoOperator::field(), or empty.
[[nodiscard]] nlohmann::ordered_json report_json(const FleetReport& report, const std::string& operator_field,
                                                 const std::vector<std::string>& incomplete);

// --- The verbs; those that write have a file each.

// FleetReport::exit_status().
int show_status(RolloutCall& call);
int show_history(RolloutCall& call);
// pause, resume, approve, abort: of the rollouts that are meant, or of a policy. `resume` without a name lifts, where
// no rollout is paused, the switch that ConfigMaps carry.
boost::asio::awaitable<int> set_switch(RolloutCall* call);
// Writes nothing, and says so with exit status 0, where nothing would be tried again.
boost::asio::awaitable<int> rollout_start(RolloutCall* call);
boost::asio::awaitable<int> rollout_undo(RolloutCall* call);
// `diff` and `--dry-run`: what the nodes of the policy (empty: of all) would do in call->world, once `given` or the
// text of --file is in it; of `start` also which of them start first, and what the others wait for. Writes nothing to
// the cluster; call->world is changed.
boost::asio::awaitable<int> preview(RolloutCall* call, std::optional<GivenText> given, std::string policy);

// --- History.

// A recorded rollout beside the cluster as it is now.
struct HistoryEntry {
  RolloutFacts facts;
  bool current = false;  // It is to what its nodes should run now.
  // Its nodes that run its revision; nullopt: unknown, because no record of the operator was read, or it is of a
  // template.
  std::optional<std::int64_t> running = {};
  std::string after = {};  // came_after().
};
// `columns`: of the terminal; 0: the output is none. On a narrow one columns are left out.
void print_rollout_history(const std::vector<HistoryEntry>& entries, std::size_t columns, std::ostream& out);

}  // namespace gso
