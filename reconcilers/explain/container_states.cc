// See container_states.h.
#include "reconcilers/explain/container_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::optional<ContainerRun> run_in(const Json& state) {
  const Json terminated = object_at(state, "terminated");
  if (terminated.empty()) return std::nullopt;
  return ContainerRun{text_at(terminated, "reason"), number_at(terminated, "exitCode"), text_at(terminated, "message")};
}

}  // namespace

std::vector<ContainerState> container_states(const AskedPod& asked) {
  std::vector<ContainerState> out;
  const Json status = object_at<Json>(asked.object, "status");
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const bool init = std::string_view(list) == "initContainerStatuses";
    for (const Json& reported : list_at(status, list)) {
      const Json state = object_at(reported, "state");
      const Json waiting = object_at(state, "waiting");
      ContainerState container;
      container.name = text_at(reported, "name");
      container.init_step =
          init && std::ranges::find(asked.containers, container.name, &ServerContainer::name) == asked.containers.end();
      container.running = member_at(state, "running") != nullptr;
      container.restarts = number_at(reported, "restartCount");
      container.waiting_reason = text_at(waiting, "reason");
      container.waiting_message = text_at(waiting, "message");
      container.ended = run_in(state);
      container.last = run_in(object_at(reported, "lastState"));
      out.push_back(std::move(container));
    }
  }
  return out;
}

std::string how_it_ended(const ContainerRun& run, std::int64_t restarts) {
  std::string out = run.reason.empty() ? fmt::format("exit code {}", run.exit_code)
                                       : fmt::format("{} (exit code {})", shown_value(run.reason), run.exit_code);
  if (restarts > 0) out += ", " + counted(restarts, "restart");
  if (!run.message.empty()) out += ": " + quoted_report(run.message);
  return out;
}

std::string quoted_report(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.size() <= 2 * kMostValueCharacters) return one_line(text);
  return fmt::format("{} ... {}", one_line(first_bytes(text, kMostValueCharacters)),
                     one_line(last_bytes(text, kMostValueCharacters)));
}

}  // namespace gso
