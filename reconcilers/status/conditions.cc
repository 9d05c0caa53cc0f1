// Phases and conditions in status texts.
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

void keep_failed_nodes(Json& status) {
  const auto nodes = status.find("nodes");
  if (nodes == status.end() || !nodes->is_array()) return;
  Json failed = Json::array();
  for (Json& node : *nodes) {
    if (text_at(node, "state") == kStateFailed) failed.push_back(std::move(node));
  }
  if (failed.empty()) {
    status.erase("nodes");
  } else {
    *nodes = std::move(failed);
  }
}

Json condition_list(const std::vector<StatusCondition>& conditions, const Json& before, std::int64_t generation,
                    WallTime now) {
  Json out = Json::array();
  for (const StatusCondition& condition : conditions) {
    const std::string status = condition.unknown ? "Unknown" : condition.holds ? "True" : "False";
    std::string since = k8s::format_time(now);
    const Json known = condition_in(before, condition.type);
    if (text_at(known, "status") == status) since = text_at(known, "lastTransitionTime", since);
    Json entry = {{"type", condition.type},
                  {"status", status},
                  {"reason", condition.reason},
                  {"message", cut_message(condition.message)},
                  {"lastTransitionTime", since}};
    if (generation > 0) entry["observedGeneration"] = generation;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace gso
