#include "controller/commands/explain_events.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/reading/forbidden_hint.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"

namespace gso {

boost::asio::awaitable<k8s::Result<std::vector<SeenEvent>>> list_events(k8s::Reader* client, k8s::ObjectKey object) {
  std::vector<SeenEvent> found;
  k8s::ItemFunction sink([&found](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.clear();
      return {};
    }
    const nlohmann::json event = nlohmann::json::parse(*json, nullptr, false);
    SeenEvent seen{text_at(event, "lastTimestamp"), text_at(object_at(event, "involvedObject"), "kind"),
                   text_at(event, "reason"), text_at(event, "message")};
    if (seen.when.empty()) seen.when = text_at(event, "eventTime");
    if (!seen.reason.empty()) found.push_back(std::move(seen));
    return {};
  });
  k8s::ListOptions options;
  options.ns = object.ns;
  options.field_selector = k8s::FieldSelector::equals("involvedObject.name", object.name);
  const k8s::Result<std::string> listed = co_await client->list(resources::core_events, options, &sink);
  if (!listed) co_return unlisted(listed.error(), resources::core_events, object.ns);
  co_return found;
}

}  // namespace gso
