// From a Status to the rule that would have let it through.
#include "controller/reading/reads.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "k8sclient/value/time.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso {

namespace {

// 'User "x" cannot list resource …' -> 'user "x"'. RBAC's own words; another authorizer may have others.
std::string who(std::string_view message) {
  constexpr std::string_view kUser = "User \"";
  const std::size_t begin = message.find(kUser);
  const std::size_t end = begin == std::string_view::npos ? begin : message.find('"', begin + kUser.size());
  if (end == std::string_view::npos) return "you";
  return fmt::format("user {}", message.substr(begin + kUser.size() - 1, end - begin - kUser.size() + 2));
}

std::string_view participle(std::string_view verb) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords{{{"list", "listed"},
                                                                                        {"get", "read"},
                                                                                        {"watch", "watched"},
                                                                                        {"patch", "patched"},
                                                                                        {"delete", "deleted"},
                                                                                        {"create", "created"}}};
  for (const auto& [plain, past] : kWords)
    if (plain == verb) return past;
  return "used";
}

std::string kind_of(const Attempt& attempt) {
  return attempt.subresource.empty() ? attempt.gvr.resource : attempt.gvr.resource + "/" + attempt.subresource;
}

// Of a write, an admission policy may be the reason: RBAC has words of its own.
bool is_missing_right(std::string_view verb, std::string_view message) {
  const bool reads = verb == "list" || verb == "get" || verb == "watch";
  return reads || message.find("User \"") != std::string_view::npos;
}

}  // namespace

std::string explain_error(const k8s::Error& error, const Attempt& attempt) {
  const std::string kind = kind_of(attempt);
  if (error.reason != k8s::Reason::forbidden || !is_missing_right(attempt.verbs.front(), error.message))
    return error.message;  // "list nodes: …" already.
  const std::string group = attempt.gvr.group.empty() ? "\"\"" : attempt.gvr.group;
  return fmt::format(
      "{}{} cannot be {} by {}. Missing permission: add {{apiGroups: [{}], resources: [{}], verbs: [{}]}} to {} "
      "(docs/rights.md)",
      kind, attempt.ns.empty() ? "" : " of namespace " + attempt.ns, participle(attempt.verbs.front()),
      who(error.message), group, kind, fmt::join(attempt.verbs, ", "),
      attempt.ns.empty() ? "a ClusterRole" : "a Role of that namespace");
}

std::string explain_error(const k8s::Error& error, std::string_view verb, const k8s::Gvr& gvr, const std::string& ns) {
  return explain_error(error, {.verbs = {std::string(verb)}, .gvr = gvr, .ns = ns, .subresource = {}});
}

std::unexpected<k8s::Error> unlisted(const k8s::Error& error, const k8s::Gvr& gvr, const std::string& ns) {
  k8s::Error out = error;
  out.message = explain_error(error, "list", gvr, ns);
  return std::unexpected(std::move(out));
}

void append_unique(std::vector<std::string>& lines, std::string line) {
  if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
}

bool is_no_answer(const k8s::Error& error) {
  const bool silent =
      error.http_status == 0 && (error.reason == k8s::Reason::transport || error.reason == k8s::Reason::timeout);
  return silent || (error.http_status >= 502 && error.http_status <= 504);
}

std::string without_query(std::string message) {
  const std::size_t path = message.find(" /");
  const std::size_t end = path == std::string::npos ? path : std::min(message.find(' ', path + 1), message.size());
  const std::size_t query = message.find('?', path == std::string::npos ? message.size() : path);
  if (query < end && end != std::string::npos) message.erase(query, end - query);
  return message;
}

// The transport's errors are "watch nodes: GET /api/v1/nodes?watch=true on HOST: CAUSE".
void ServerOutage::failed(const k8s::Error& error, k8s::WallTime now) {
  if (is_on()) return;
  constexpr std::string_view kOn = " on ";
  const std::string message = without_query(error.message);
  const std::size_t on = message.find(kOn);
  const std::size_t colon = on == std::string::npos ? on : message.find(": ", on);
  const bool named = colon != std::string::npos;
  const std::string host = named ? " at " + message.substr(on + kOn.size(), colon - on - kOn.size()) : std::string();
  line_ = fmt::format("the API server{} cannot be reached since {}, and this view is older: {}", host,
                      k8s::format_time(now), named ? message.substr(colon + 2) : message);
}

template boost::asio::awaitable<k8s::Result<ListedObjects<DaemonSet>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<DaemonSet> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<Node>>> list_objects(k8s::Reader*, k8s::Gvr, k8s::ListOptions,
                                                                               k8s::Result<Node> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<Pod>>> list_objects(k8s::Reader*, k8s::Gvr, k8s::ListOptions,
                                                                              k8s::Result<Pod> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<SharingPolicy>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingPolicy> (*)(std::string_view));
template boost::asio::awaitable<k8s::Result<ListedObjects<SharingRollout>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingRollout> (*)(std::string_view));

boost::asio::awaitable<k8s::Result<bool>> DiscoveryOnce::served(k8s::Gvr gvr) {
  if (!std::exchange(asked_, true)) {
    const k8s::CallOptions call;
    k8s::Result<k8s::ServedKinds> answer = co_await client_->discover(call);
    kinds_.emplace(std::move(answer));
    answered_->notify();
  }
  while (!kinds_) (void)co_await answered_->wait();
  const k8s::Result<k8s::ServedKinds>& kinds = *kinds_;
  // Rights that were narrowed can keep the list of all kinds from a person, and not the document of a group.
  if (!kinds && kinds.error().reason != k8s::Reason::forbidden) co_return std::unexpected(kinds.error());
  const std::optional<bool> known = kinds ? kinds->serves(gvr) : std::nullopt;
  if (known) co_return *known;
  const k8s::CallOptions call;
  co_return co_await client_->served(gvr, call);
}

}  // namespace gso
