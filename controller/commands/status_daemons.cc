#include "controller/commands/status_daemons.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "controller/commands/rollout/view.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

std::string_view mode_of(const DaemonProgress& daemon) {
  return daemon.watches_host ? "observe" : "run";
}

}  // namespace

void print_daemons(const std::vector<DaemonProgress>& daemons, TerminalWidth width, std::ostream& out) {
  if (daemons.empty()) return;
  std::vector<TextRow> rows{{"STANDALONE-MPS", "MODE", "TEMPLATE", "PROGRESS"}};
  for (const DaemonProgress& daemon : daemons) {
    std::string progress =
        fmt::format("{} {}/{}", progress_bar(daemon.updated, daemon.total), daemon.updated, daemon.total);
    for (const auto& [what, nodes] :
         {std::pair("in progress", &daemon.in_progress), std::pair("deferred", &daemon.deferred),
          std::pair("not ready", &daemon.not_ready)}) {
      if (!nodes->empty()) progress += fmt::format(", {}: {}", what, first_names(*nodes));
    }
    rows.push_back({daemon.daemonset, std::string(mode_of(daemon)), daemon.revision.empty() ? "-" : daemon.revision,
                    std::move(progress)});
  }
  out << "\n";
  print_table(rows, out, width);
}

nlohmann::ordered_json daemons_json(const std::vector<DaemonProgress>& daemons) {
  auto out = nlohmann::ordered_json::array();
  for (const DaemonProgress& daemon : daemons) {
    out.push_back({{"daemonSet", daemon.daemonset},
                   {"mode", mode_of(daemon)},
                   {"template", daemon.revision},
                   {"updated", daemon.updated},
                   {"total", daemon.total},
                   {"inProgress", daemon.in_progress},
                   {"deferred", daemon.deferred},
                   {"notReady", daemon.not_ready}});
  }
  return out;
}

}  // namespace gso
