// AuthorizingTransport: another Transport behind RBAC. What no rule allows is refused in the API server's words.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "k8sclient/transport/transport.h"
#include "tests/k8sclient/scripted_transport.h"

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
    const std::string why = refusal(request);
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
  struct Wanted {
    std::string verb, group, ns, resource, name;
  };

  // Paths that are no resource (discovery) are everybody's.
  static Wanted read(const k8s::HttpRequest& request) {
    std::vector<std::string> parts;
    const std::string path = request.path.substr(0, request.path.find('?'));
    for (std::size_t from = 1; from < path.size();) {
      const std::size_t to = std::min(path.find('/', from), path.size());
      parts.push_back(path.substr(from, to - from));
      from = to + 1;
    }
    Wanted out;
    const bool core = !parts.empty() && parts[0] == "api";
    const std::size_t skip = core ? 2 : 3;
    if (parts.size() <= skip) return out;
    if (!core) out.group = parts[1];
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(skip));
    if (parts.size() > 2 && parts[0] == "namespaces") {
      out.ns = parts[1];
      parts.erase(parts.begin(), parts.begin() + 2);
    }
    out.resource = parts[0];
    if (parts.size() > 1) out.name = parts[1];
    if (parts.size() > 2) out.resource += "/" + parts[2];
    const bool watch = request.path.find("watch=true") != std::string::npos;
    if (request.method == k8s::Method::get) out.verb = watch ? "watch" : out.name.empty() ? "list" : "get";
    if (request.method == k8s::Method::patch) out.verb = "patch";
    if (request.method == k8s::Method::post) out.verb = "create";
    if (request.method == k8s::Method::put) out.verb = "update";
    if (request.method == k8s::Method::del) out.verb = "delete";
    return out;
  }

  // Everybody may ask what he may.
  k8s::Result<k8s::HttpResponse> review(const std::string& body) const {
    auto review = nlohmann::json::parse(body);
    const auto& asked = review["spec"]["resourceAttributes"];
    const std::string sub = asked.value("subresource", "");
    Wanted wanted;
    wanted.verb = asked["verb"];
    wanted.group = asked["group"];
    wanted.ns = asked.value("namespace", "");
    wanted.resource = asked.value("resource", "") + (sub.empty() ? "" : "/" + sub);
    review["status"]["allowed"] = is_allowed(wanted);
    return k8s::test::Answer::json(201, review.dump()).response();
  }

  [[nodiscard]] bool is_allowed(const Wanted& wanted) const {
    const auto has = [](const std::vector<std::string>& list, const std::string& word) {
      return std::ranges::find(list, word) != list.end();
    };
    return std::ranges::any_of(rules_, [&](const RbacRule& rule) {
      return (rule.ns.empty() || rule.ns == wanted.ns) && has(rule.groups, wanted.group) &&
             has(rule.resources, wanted.resource) && has(rule.verbs, wanted.verb);
    });
  }

  std::string refusal(const k8s::HttpRequest& request) {
    const Wanted wanted = read(request);
    if (wanted.resource.empty()) return {};
    if (is_allowed(wanted)) {
      used.insert(fmt::format("{} {} {}", wanted.verb, wanted.resource, wanted.group));
      return {};
    }
    return fmt::format("{} is forbidden: User \\\"oncall\\\" cannot {} resource \\\"{}\\\" in API group \\\"{}\\\" {}",
                       wanted.resource, wanted.verb, wanted.resource, wanted.group,
                       wanted.ns.empty() ? "at the cluster scope" : "in the namespace \\\"" + wanted.ns + "\\\"");
  }

  k8s::Transport* behind_;
  std::vector<RbacRule> rules_;
};

}  // namespace gso
