// One page of each kind, names only, within a deadline.
#include "controller/cli/completion_names.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "controller/commands/shared/session.h"
#include "k8sclient/api/client.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr std::chrono::seconds kPatience(2);
constexpr int kMostCompletions = 500;

k8s::Gvr gvr_of(NameQuestion::Kind kind) {
  switch (kind) {
    case NameQuestion::Kind::node:
      return resources::nodes;
    case NameQuestion::Kind::name_space:
      return resources::namespaces;
    case NameQuestion::Kind::pod:
      return resources::pods;
    case NameQuestion::Kind::policy:
      return resources::sharing_policies;
    case NameQuestion::Kind::rollout:
      return resources::sharing_rollouts;
  }
  return {};
}

std::string name_in(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  return text_at(object_at(object, "metadata"), "name");
}

asio::awaitable<int> ask(Session session, std::vector<NameQuestion> questions, std::vector<std::string>* names) {
  k8s::ClientOptions options;
  options.max_retries = 0;
  options.request_timeout = kPatience;
  k8s::ApiClient client(session.transport, session.clock, options);
  *names = co_await list_names(&client, session.clock, questions, session.namespace_name);
  co_return 0;
}

}  // namespace

asio::awaitable<std::vector<std::string>> list_names(k8s::Reader* client, k8s::Clock* clock,
                                                     std::vector<NameQuestion> questions, std::string ns) {
  std::vector<std::string> out;
  const k8s::MonoTime deadline = clock->monotonic() + kPatience;
  for (const NameQuestion& question : questions) {
    k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
      const std::string name = json ? name_in(*json) : std::string();
      if (!name.empty()) out.push_back(question.before + name + question.after);
      return {};
    });
    k8s::ListOptions options;
    options.page_limit = kMostCompletions;
    options.call.deadline = deadline;
    if (question.kind == NameQuestion::Kind::pod) options.ns = question.ns.empty() ? ns : question.ns;
    const k8s::Gvr gvr = gvr_of(question.kind);
    const std::string first_page;
    const k8s::Result<k8s::ListPage> page = co_await client->list_page(gvr, options, first_page, &sink);
    if (!page) continue;
  }
  co_return out;
}

std::vector<std::string> names_of_cluster(const std::vector<NameQuestion>& questions,
                                          const NameConnection& connection) {
  std::vector<std::string> out;
  Options options;
  options.kubeconfig = connection.kubeconfig;
  options.context = connection.context;
  options.request_timeout = kPatience;
  std::ostream nowhere(nullptr);
  (void)run_connected("completion", options, k8s::Interaction{}, nowhere,
                      [&](const Session& session) { return ask(session, questions, &out); });
  return out;
}

}  // namespace gso
