// AuthorizingTransport: another Transport behind RBAC. What no rule allows is refused in the API server's words.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/k8sclient/scripted_transport.h"
#include "tests/sim/apiserver/request.h"

namespace gso {

struct RbacRule {
  std::vector<std::string> groups;
  std::vector<std::string> resources;  // "pods", "pods/log"
  std::vector<std::string> verbs;
  std::string ns;  // Empty: of a ClusterRole.
};

class AuthorizingTransport final : public k8s::Transport {
 public:
  AuthorizingTransport(k8s::Transport* behind, std::vector<RbacRule> rules)
      : behind_(behind), rules_(std::move(rules)) {}

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    if (request.path.find("/selfsubjectaccessreviews") != std::string::npos) co_return review(request.body);
    const std::string why = refusal(sim::parse_request(request));
    if (!why.empty()) co_return k8s::test::Answer::status_of(403, "Forbidden", why).response();
    k8s::Result<k8s::HttpResponse> answer = co_await behind_->send(request);
    co_return answer;
  }
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await behind_->open(request);
    co_return stream;
  }

  // "list pods gpu-operator", of all that was allowed.
  std::set<std::string> used;

 private:
  static std::string resource_of(const sim::RequestInfo& info) {
    return info.plural + (info.subresource.empty() ? "" : "/" + info.subresource);
  }

  // Everybody may ask what he may.
  k8s::Result<k8s::HttpResponse> review(const std::string& body) const {
    auto review = nlohmann::json::parse(body);
    const auto& asked = review["spec"]["resourceAttributes"];
    sim::RequestInfo wanted;
    wanted.verb = asked["verb"];
    wanted.group = asked["group"];
    wanted.key.ns = asked.value("namespace", "");
    wanted.plural = asked.value("resource", "");
    wanted.subresource = asked.value("subresource", "");
    review["status"]["allowed"] = is_allowed(wanted);
    return k8s::test::Answer::json(201, review.dump()).response();
  }

  [[nodiscard]] bool is_allowed(const sim::RequestInfo& wanted) const {
    const auto has = [](const std::vector<std::string>& list, const std::string& word) {
      return std::ranges::find(list, word) != list.end();
    };
    return std::ranges::any_of(rules_, [&](const RbacRule& rule) {
      return (rule.ns.empty() || rule.ns == wanted.key.ns) && has(rule.groups, wanted.group) &&
             has(rule.resources, resource_of(wanted)) && has(rule.verbs, wanted.verb);
    });
  }

  // Paths that are no resource (discovery) are everybody's.
  std::string refusal(const sim::RequestInfo& wanted) {
    if (wanted.kind == sim::RequestInfo::Path::other) return {};
    if (is_allowed(wanted)) {
      used.insert(fmt::format("{} {} {}", wanted.verb, resource_of(wanted), wanted.group));
      return {};
    }
    return fmt::format(
        R"({0} is forbidden: User \"oncall\" cannot {1} resource \"{0}\" in API group \"{2}\" {3})",
        resource_of(wanted), wanted.verb, wanted.group,
        wanted.key.ns.empty() ? "at the cluster scope" : "in the namespace \\\"" + wanted.key.ns + "\\\"");
  }

  k8s::Transport* behind_;
  std::vector<RbacRule> rules_;
};

}  // namespace gso
