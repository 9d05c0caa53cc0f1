// Reads for whoever typed a command: lists and discovery, read once, and what a failed read means (no permission, or no
// server).
#pragma once

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "reconcilers/model/message_text.h"

namespace gso {

// --- Explains a 403 so that it can be granted: what, to whom, and the missing rule.

// The request that was refused. `verbs`: what a rule must allow; the first one is the verb that was refused.
struct Attempt {
  std::vector<std::string> verbs{"list"};
  k8s::Gvr gvr;
  std::string ns;           // Empty: in all namespaces, or a cluster-scoped kind.
  std::string subresource;  // "status", "log"; empty: the object itself.
  std::string name = {};    // Of one object; empty: of any.
};

// A 403: 'configmaps of namespace gpu-operator cannot be listed by User "x". Missing permission: add {apiGroups: …} to
// a Role of that namespace (docs/rights.md)'. Any other error: its own text.
[[nodiscard]] std::string explain_error(const k8s::Error& error, const Attempt& attempt);
// The same of one verb on objects themselves (coroutines name no aggregates).
[[nodiscard]] std::string explain_error(const k8s::Error& error, std::string_view verb, const k8s::Gvr& gvr,
                                        const std::string& ns);

// The same as an error, of a list. `ns`: empty for all, or a cluster-scoped kind.
[[nodiscard]] std::unexpected<k8s::Error> unlisted(const k8s::Error& error, const k8s::Gvr& gvr,
                                                   const std::string& ns = {});

// Adds a line that is not there yet.
void append_unique(std::vector<std::string>& lines, std::string line);

// --- An API server that gives no answer, in one line that stays the same for as long as the outage lasts.

// No answer came, or that of something before the server that cannot reach it either.
[[nodiscard]] bool is_no_answer(const k8s::Error& error);

// A request's error without what differs from one attempt to the next: the query of its path.
[[nodiscard]] std::string without_query(std::string message);

class ServerOutage {
 public:
  // An outage that is on goes on: its time and cause are those of its first error. Only of is_no_answer().
  void failed(const k8s::Error& error, k8s::WallTime now);
  void over() { line_.clear(); }

  [[nodiscard]] bool is_on() const { return !line_.empty(); }
  // "the API server at HOST cannot be reached since TIME, and this view is older: CAUSE"; empty: no outage.
  [[nodiscard]] const std::string& line() const { return line_; }

 private:
  std::string line_;
};

// --- Lists and discovery, read once, with one answer for a kind that the server does not have.

// --- list_objects(): all objects of a list as projected values. What cannot be read is named and never dropped
// without a word: "not there" and "not understood" are different answers.

template <class T>
struct ListedObjects {
  std::vector<T> objects;
  std::vector<std::string> unreadable;  // Of each other one: which it is, and why.
};

// "nodes that cannot be read: Node n1: why".
[[nodiscard]] inline std::string describe_unreadable(const k8s::Gvr& gvr, const std::vector<std::string>& unreadable) {
  return fmt::format("{} that cannot be read: {}", gvr.resource, first_names(unreadable));
}

// Errors: of the list as a whole, explained where the right is missing.
template <class T>
boost::asio::awaitable<k8s::Result<ListedObjects<T>>> list_objects(k8s::Reader* client, k8s::Gvr gvr,
                                                                   k8s::ListOptions options,
                                                                   k8s::Result<T> (*project)(std::string_view)) {
  ListedObjects<T> out;
  const auto take = [&out, project](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {  // It starts over.
      out = {};
      return {};
    }
    k8s::Result<T> object = project(*json);
    if (object)
      out.objects.push_back(*std::move(object));
    else
      out.unreadable.push_back(object.error().message);
    return {};
  };
  k8s::ItemFunction sink(
      take, [&out](std::string_view /*metadata*/, const k8s::Error& why) { out.unreadable.push_back(why.message); });
  const k8s::Result<std::string> listed = co_await client->list(gvr, options, &sink);
  if (!listed) co_return unlisted(listed.error(), gvr, options.ns);
  co_return out;
}

// Kinds that several files list: compiled once, in reads.cc. (g++ numbers the fields of a coroutine's frame anew
// in each file, which an optimised link then reports as two types of one name.)
struct DaemonSet;
struct Node;
struct Pod;
struct SharingPolicy;
struct SharingRollout;
extern template boost::asio::awaitable<k8s::Result<ListedObjects<DaemonSet>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<DaemonSet> (*)(std::string_view));
extern template boost::asio::awaitable<k8s::Result<ListedObjects<Node>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<Node> (*)(std::string_view));
extern template boost::asio::awaitable<k8s::Result<ListedObjects<Pod>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<Pod> (*)(std::string_view));
extern template boost::asio::awaitable<k8s::Result<ListedObjects<SharingPolicy>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingPolicy> (*)(std::string_view));
extern template boost::asio::awaitable<k8s::Result<ListedObjects<SharingRollout>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<SharingRollout> (*)(std::string_view));

// --- Which kinds the API server serves, for one reading of a cluster: asked by one request, when the first kind is.

class DiscoveryOnce {
 public:
  explicit DiscoveryOnce(k8s::Reader* client) : client_(client), answered_(client->clock()->make_signal()) {}
  // Several can ask at once. Errors: those of the request.
  boost::asio::awaitable<k8s::Result<bool>> served(k8s::Gvr gvr);

 private:
  k8s::Reader* client_;
  std::unique_ptr<k8s::Signal> answered_;
  bool asked_ = false;
  std::optional<k8s::Result<k8s::ServedKinds>> kinds_;
};

}  // namespace gso
