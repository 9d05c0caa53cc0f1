// `rollout status --watch` and `--wait`: a live tree of rollouts, their waves and their nodes on a terminal, a line for
// each change elsewhere.
#include <algorithm>
#include <memory>
#include <tuple>

#include "controller/commands/live/live_screen.h"
#include "controller/commands/live/view.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/status_watch.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"

namespace gso {

namespace {

// How a phase is shown: its place among the nodes, its sign, and its colour.
struct PhaseSign {
  int rank;
  const char* sign;
  const char* ascii;
  Paint paint;

  [[nodiscard]] std::string text(const Screen& screen) const {
    return painted(screen.utf8 ? sign : ascii, paint, screen);
  }
};
PhaseSign sign_of(Phase phase) {
  switch (phase) {
    case Phase::draining:
    case Phase::restarting:
    case Phase::verifying:
    case Phase::following_daemonset:
      return {0, "◐", "*", Paint::yellow};
    case Phase::failed:
      return {1, "✖", "x", Paint::red};
    case Phase::blocked:
      return {2, "⚠", "!", Paint::red};
    case Phase::held:
      return {3, "‖", "=", Paint::yellow};
    case Phase::pending:
    case Phase::unrecorded:
      return {4, "○", "-", Paint::dim};
    case Phase::up_to_date:
    case Phase::unmanaged:
      break;
  }
  return {5, "✔", "+", Paint::green};
}

struct TreeNode {
  std::string name;
  Phase phase = Phase::pending;
  std::string state, text;
};

// Nodes in a change first, each with its step and the pods that block it; then failed, blocked, held and pending ones;
// those with nothing to do are counted. Lines fit the screen's columns. `only`: the nodes of the tree.
class Tree {
 public:
  Tree(ReadingPass& pass, const NodeFilter& only, const Screen& screen) : pass_(pass), only_(only), screen_(screen) {}

  std::vector<LiveLine> lines(const FleetReport& fleet) {
    for (const RolloutReport& report : fleet.rollouts) add_rollout(report);
    for (const PolicyWait& wait : fleet.waiting) line(wait_line(wait));
    if (out_.empty()) append_text(out_, "No rollout is in progress.\n");
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { append_text(out_, cut_to(text, screen_.columns) + "\n"); }

  void add_rollout(const RolloutReport& report) {
    const RolloutFacts& facts = report.facts;
    const SharingRollout& rollout = *facts.rollout;
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    const Paint paint = facts.went_wrong() ? Paint::red : facts.finished() ? Paint::green : Paint::bold;
    const std::string phase = report.stop.is_set() ? report.stop.phase + " (recorded)" : facts.phase_text();
    const auto started = facts.finished() ? std::nullopt : k8s::parse_rfc3339(facts.started_at);
    const std::string age = started ? about(pass_.now() - *started) : "";
    line(fmt::format("{}  {}{}", painted(one_line(rollout.meta.name), Paint::bold, screen_),
                     painted(one_line(phase), paint, screen_),
                     !started                              ? std::string()
                     : facts.advances() && !facts.stands() ? "  running " + age
                                                           : fmt::format("  started {} ago", age)));
    line(of_template ? fmt::format("  {} to {}, policy {}", describe_subject(rollout.config_map, rollout.key),
                                   rollout.to_revision, rollout.policy)
                     : fmt::format("  {} key {} to {}, policy {}", rollout.config_map, or_none(rollout.key),
                                   rollout.to_revision, rollout.policy));
    if (!facts.ready.message.empty()) line(one_line(fmt::format("  {}: {}", facts.ready.code, facts.ready.message)));
    line(fmt::format("  {}{}", counts_text(facts),
                     report.since_completion.empty() ? "" : "; " + report.since_completion));
    if (!facts.finished()) line(facts.wave == 0 ? "  canary" : fmt::format("  wave {}", facts.wave));
    // The first command of `rollout status`, above the nodes: a terminal might have no room below them.
    if (!report.next.empty())
      append_text(out_, wrapped(one_line("  next: " + report.next.front().text()) + "\n", screen_.columns));
    of_template ? add_daemons(facts) : add_nodes(rollout);
  }

  // Of a template only the nodes that its SharingRollout names are known.
  void add_daemons(const RolloutFacts& facts) {
    for (const RolloutFacts::NodeRow& node : facts.nodes) {
      branch(&node == &facts.nodes.back(), one_line(fmt::format("{}  {}  {}", node.name, node.state, node.why.message)),
             node.name, facts.rollout->meta.name);
    }
  }

  std::vector<TreeNode> nodes_of(const SharingRollout& rollout) {
    std::vector<TreeNode> out;
    const RolloutKey key = rollout_key_of(rollout);
    for (const auto& [node_key, node] : pass_.world().nodes.all()) {
      const NodeAssessment* a = pass_.index().find(node_key.name);
      if (a == nullptr || !pass_.index().is_of(*a, key)) continue;
      ShownState shown = shown_state(pass_, *node);
      if (!only_.shows(shown.state, a->policy.view(), node->meta.labels)) continue;
      out.push_back({node_key.name, phase_of(*a), std::move(shown.state), std::move(shown.message)});
    }
    std::ranges::sort(out, [](const TreeNode& a, const TreeNode& b) {
      return std::tuple(sign_of(a.phase).rank, std::string_view(a.name)) <
             std::tuple(sign_of(b.phase).rank, std::string_view(b.name));
    });
    return out;
  }

  void add_nodes(const SharingRollout& rollout) {
    constexpr std::size_t kMostPending = 10;
    std::vector<TreeNode> nodes = nodes_of(rollout);
    std::size_t up_to_date = 0;
    std::size_t pending = 0;
    std::erase_if(nodes, [&](const TreeNode& node) {
      const bool done = node.phase == Phase::up_to_date || node.phase == Phase::unmanaged;
      const bool beyond = node.phase == Phase::pending && ++pending > kMostPending;
      up_to_date += done ? 1 : 0;
      return done || beyond;
    });
    std::size_t name = 0;
    std::size_t state = 0;
    for (const TreeNode& node : nodes) {
      name = std::max(name, node.name.size());
      state = std::max(state, node.state.size());
    }
    const std::size_t hidden = pending > kMostPending ? pending - kMostPending : 0;
    const std::size_t branches = nodes.size() + (hidden > 0 ? 1 : 0) + (up_to_date > 0 ? 1 : 0);
    std::size_t at = 0;
    for (const TreeNode& node : nodes) {
      const PhaseSign sign = sign_of(node.phase);
      branch(++at == branches,
             fmt::format("{} {:<{}}  {}{}{}", sign.text(screen_), node.name, name,
                         painted(node.state, sign.paint, screen_), std::string(state + 2 - node.state.size(), ' '),
                         one_line(node.text)),
             node.name, rollout.meta.name);
    }
    if (hidden > 0) branch(++at == branches, fmt::format("and {} more pending", hidden));
    if (up_to_date > 0)
      branch(true, fmt::format("{} {} up to date", sign_of(Phase::up_to_date).text(screen_), up_to_date));
  }

  // `node`: what the branch is about, under the rollout.
  void branch(bool last, const std::string& text, const std::string& node = {}, const std::string& rollout = {}) {
    const char* const corner = screen_.utf8 ? (last ? "  └─ " : "  ├─ ") : (last ? "  `- " : "  |- ");
    std::string whole = corner + text;
    whole.erase(whole.find_last_not_of(' ') + 1);
    append_text(out_, cut_to(whole, screen_.columns) + "\n", node, rollout);
  }

  ReadingPass& pass_;
  const NodeFilter& only_;
  const Screen& screen_;
  std::vector<LiveLine> out_;
};

constexpr std::string_view kCommand = "gpu-sharing-operator rollout status";

// What views say, and what is waited for when they were made last.
struct WatchedRollouts {
  RolloutOptions rollout;
  NodeFilter only;
  std::string waits_for = "the cluster has not been read completely";
  std::string outage{};
  std::vector<std::string> steps{};

  FleetView view(const FleetLook& look, const Screen& room) {
    ReadingPass pass(look.world, look.index, look.settings, look.now);
    constexpr bool kHasOperator = true;  // That none runs is a line of its own.
    const FleetReport report = fleet_report(pass, rollout.name, kHasOperator);
    const WaitState state = wait_state(pass, rollout.name);
    FleetView out;
    out.last = rollout.wait && state.is != WaitState::Is::waiting;
    out.exit_status = out.last && state.is != WaitState::Is::complete ? 1 : 0;
    waits_for = state.why;
    outage = look.outage;
    if (rollout.timeout) steps = steps_of_waited(pass, rollout.name);
    std::vector<std::string> lines;
    if (look.presence.none) lines.push_back(look.presence.none->text());
    for (const std::string& missing : look.incomplete) lines.push_back("incomplete: " + missing);
    if (!room.is_terminal()) {
      const std::vector<std::string> progress = progress_lines(report);
      lines.insert(lines.end(), progress.begin(), progress.end());
      if (progress.empty() || out.last) lines.push_back((out.exit_status == 0 ? "" : "stopped: ") + state.why);
    }
    for (const std::string& line : lines) append_text(out.lines, wrapped_prose(one_line(line) + "\n", room.columns));
    if (room.is_terminal()) std::ranges::move(Tree(pass, only, room).lines(report), std::back_inserter(out.lines));
    return out;
  }

  void print_timeout(std::ostream& err) const {
    print_line(err, "{}: timed out after {} waiting for {}: {}{}", kCommand, k8s::format_go_duration(*rollout.timeout),
               waited_for(rollout.name), waits_for, outage.empty() ? "" : "; " + outage);
    for (const std::string& step : steps) print_line(err, "  {}", step);
  }
};

}  // namespace

FleetWatch watch_of_rollouts(const RolloutOptions& rollout, const NodeFilter& only, const PlannerSettings& settings) {
  const auto watched = std::make_shared<WatchedRollouts>(WatchedRollouts{.rollout = rollout, .only = only});
  FleetWatch out{.settings = settings, .command = "rollout status", .redraw = std::chrono::seconds(1)};
  out.lease = {settings.operator_namespace, rollout.lease_name};
  out.only_news = true;
  out.timeout = rollout.timeout;
  out.show = [watched](const FleetLook& look, const Screen& room) { return watched->view(look, room); };
  out.timed_out = [watched](std::ostream& err) { watched->print_timeout(err); };
  return out;
}

int watch_rollouts(const RolloutOptions& rollout, const Options& options, std::ostream& out, std::ostream& err) {
  const k8s::Result<NodeFilter> only = node_filter_of(rollout.only);
  if (!only) return refuse(err, kCommand, only.error().message);
  return run_connected(kCommand, options, k8s::terminal_of_process(), err, [&](const Session& session) {
    return run_live(session, rollout.watch, watch_of_rollouts(rollout, *only, options.planner_settings()), &out, &err);
  });
}

}  // namespace gso
