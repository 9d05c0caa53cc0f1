// Lists and discovery, read once, with one answer for a kind that the server does not have.
#pragma once

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/reading/failed_reads.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "reconcilers/model/message_text.h"

namespace gso {

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
    if (object) {
      out.objects.push_back(*std::move(object));
    } else {
      out.unreadable.push_back(object.error().message);
    }
    return {};
  };
  k8s::ItemFunction sink(take, [&out](const k8s::Error& why) { out.unreadable.push_back(why.message); });
  const k8s::Result<std::string> listed = co_await client->list(gvr, options, &sink);
  if (!listed) co_return unlisted(listed.error(), gvr, options.ns);
  co_return out;
}

// Kinds that several files list: compiled once, in list_objects.cc. (g++ numbers the fields of a coroutine's frame anew
// in each file, which an optimised link then reports as two types of one name.)
struct DaemonSet;
struct Node;
struct SharingPolicy;
struct SharingRollout;
extern template boost::asio::awaitable<k8s::Result<ListedObjects<DaemonSet>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<DaemonSet> (*)(std::string_view));
extern template boost::asio::awaitable<k8s::Result<ListedObjects<Node>>> list_objects(
    k8s::Reader*, k8s::Gvr, k8s::ListOptions, k8s::Result<Node> (*)(std::string_view));
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
