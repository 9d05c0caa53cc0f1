#include "controller/commands/rollout/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/commands/live/lines.h"
#include "controller/commands/live/live_screen.h"
#include "controller/commands/rollout/tree.h"
#include "controller/commands/rollout/wait.h"
#include "controller/commands/shared/print_line.h"
#include "controller/commands/shared/screen.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/shared/stop_signals.h"
#include "controller/commands/status_watch.h"
#include "reconcilers/model/foreign_text.h"

namespace gso {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kCommand = "gpu-sharing-operator rollout status";

}  // namespace

std::string NewLines::of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    if (!seen_.contains(line)) out += one_line(line) + "\n";
  }
  seen_ = std::set<std::string>(lines.begin(), lines.end());
  return out;
}

namespace {

FleetVerdict verdict_of(const RolloutOptions& rollout, const WaitState& state) {
  if (!rollout.wait || state.is == WaitState::Is::waiting) return {};
  return {.exit_status = state.is == WaitState::Is::complete ? 0 : 1, .last = true};
}

asio::awaitable<int> watch(Session session, RolloutOptions rollout, NodeFilter only, PlannerSettings settings,
                           std::ostream* out, std::ostream* err) {
  const std::unique_ptr<k8s::Signal> stop = session.clock->make_signal();
  const std::unique_ptr<LiveScreen> live =
      rollout.watch ? live_screen_of_process(session, stop.get(), settings, rollout.lease_name, out) : nullptr;
  StopSignals signals(*session.io, stop.get(), [screen = live.get()] {
    if (screen != nullptr) screen->leave();
  });
  const int code = co_await watch_rollouts_until(session.client, session.clock, stop.get(), rollout, only, settings,
                                                 live.get(), out, err);
  signals.cancel();
  co_return code;
}

}  // namespace

asio::awaitable<int> watch_rollouts_until(k8s::Reader* client, k8s::Clock* clock, k8s::Signal* stop,
                                          RolloutOptions rollout, NodeFilter only, PlannerSettings settings,
                                          LiveScreen* live, std::ostream* out, std::ostream* err) {
  const TreeScope scope{rollout.name, std::move(only)};
  NewLines news;
  std::string waits_for = "the cluster has not been read completely";
  std::string outage;
  std::vector<std::string> steps;
  FleetWatch fleet;
  fleet.client = client;
  fleet.clock = clock;
  fleet.stop = stop;
  fleet.settings = settings;
  fleet.command = "rollout status";
  fleet.lease = {settings.operator_namespace, rollout.lease_name};
  fleet.timeout = rollout.timeout;
  fleet.show = [&](const FleetLook& look, std::ostream& view) {
    const k8s::WallTime now = clock->now();
    const WaitState state = wait_state(look.world, look.index, look.settings, now, rollout.name);
    const FleetVerdict verdict = verdict_of(rollout, state);
    waits_for = state.why;
    outage = look.outage;
    if (rollout.timeout) steps = steps_of_waited(look.world, look.index, look.settings, now, rollout.name);
    std::vector<std::string> lines;
    if (look.no_operator) lines.push_back(look.no_operator->text());
    for (const std::string& missing : look.incomplete) lines.push_back("incomplete: " + missing);
    if (live != nullptr) {
      std::vector<LiveLine> page;
      for (const std::string& line : lines)
        append_text(page, wrapped_prose(one_line(line) + "\n", live->room().columns));
      std::ranges::move(rollout_tree(look.world, look.index, look.settings, scope, now, live->room()),
                        std::back_inserter(page));
      live->show(std::move(page));
      view << live->text();
    } else {
      std::vector<std::string> progress = progress_lines(look.world, look.index, look.settings, now, rollout.name);
      lines.insert(lines.end(), progress.begin(), progress.end());
      if (progress.empty() || verdict.last) lines.push_back((verdict.exit_status == 0 ? "" : "stopped: ") + state.why);
      view << news.of(lines);
    }
    return verdict;
  };
  if (live != nullptr) fleet.redraw = std::chrono::seconds(1);
  const int code = co_await watch_on(live, std::move(fleet), out, err);
  if (code != kTimedOut) co_return code;
  print_line(*err, "{}: timed out after {} waiting for {}: {}{}", kCommand, k8s::format_go_duration(*rollout.timeout),
             waited_for(rollout.name), waits_for, outage.empty() ? "" : "; " + outage);
  for (const std::string& step : steps) print_line(*err, "  {}", step);
  co_return code;
}

int watch_rollouts(const RolloutOptions& rollout, const Options& options, std::ostream& out, std::ostream& err) {
  const PlannerSettings settings = options.planner_settings();
  const k8s::Result<NodeFilter> only = node_filter_of(rollout.only);
  if (!only) {
    print_line(err, "{}: {}", kCommand, only.error().message);
    return 2;
  }
  RolloutOptions asked = rollout;
  asked.lease_name = options.lease_name;
  return run_connected(kCommand, options, k8s::terminal_of_process(), err,
                       [&](const Session& session) { return watch(session, asked, *only, settings, &out, &err); });
}

}  // namespace gso
