// Reader: the reading verbs of the Kubernetes API, and what they take. Whoever only reads is given a Reader, so that
// the type says that it writes nothing. client.h implements it; a decorator implements it over another Reader.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/api/discovery.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace k8s {

struct CallOptions {
  CallOptions() = default;                // No aggregate: see object.h.
  MonoTime deadline = MonoTime::never();  // No attempt starts after it, and none outlives it (`timeout`).
  Channel channel = Channel::unary;
};

struct ListOptions {
  ListOptions() = default;  // No aggregate: see object.h.
  std::string ns;           // Empty: all namespaces, or a cluster-scoped kind.
  LabelSelector label_selector;
  FieldSelector field_selector;
  std::string resource_version;  // Empty: most recent (a consistent read).
  int page_limit = 0;            // 0: ClientOptions::page_limit.
  CallOptions call;
};

// Receives a list's items one by one, each as the raw JSON of the object (without apiVersion and kind, as the API
// server sends items). kJsonPadding bytes past its end are readable.
class ItemSink {
 public:
  virtual ~ItemSink() = default;
  // The list starts over (its continue token expired): forget what was delivered.
  virtual void restart() = 0;
  // An error ends the list with that error.
  virtual Result<void> item(std::string_view json) = 0;
  // An object that is too large to be read, in the place of its item: `metadata` is an object that has nothing but its
  // metadata, `why` names it. Who does not say what that means ends the list: what was not read can matter.
  virtual Result<void> skipped(std::string_view metadata, Error why) {
    (void)metadata;
    return std::unexpected(std::move(why));
  }
};

// ItemSink over a function, which must also forget everything when called with nullopt (a single page never does).
// `skipped` gets the objects that are too large; without it they end the list.
class ItemFunction final : public ItemSink {
 public:
  using Item = std::function<Result<void>(std::optional<std::string_view>)>;
  using Skipped = std::function<void(std::string_view metadata, Error why)>;
  explicit ItemFunction(Item item, Skipped skipped = {}) : item_(std::move(item)), skipped_(std::move(skipped)) {}
  void restart() override { (void)item_(std::nullopt).has_value(); }
  Result<void> item(std::string_view json) override { return item_(json); }
  Result<void> skipped(std::string_view metadata, Error why) override {
    if (!skipped_) return ItemSink::skipped(metadata, std::move(why));
    skipped_(metadata, std::move(why));
    return {};
  }

 private:
  Item item_;
  Skipped skipped_;
};

struct ListPage {
  std::string resource_version;
  std::string continue_token;  // Empty on the last page.
};

struct WatchOptions {
  WatchOptions() = default;  // No aggregate: see object.h.
  std::string ns;
  LabelSelector label_selector;
  FieldSelector field_selector;
  std::string resource_version;
  bool send_initial_events = false;   // WatchList: resourceVersionMatch=NotOlderThan is added.
  bool protobuf = false;              // The server may write protobuf; the answer's Content-Type says what it does.
  std::chrono::seconds timeout{290};  // `timeoutSeconds`: the server ends the watch then.
};

class Reader {
 public:
  virtual ~Reader() = default;

  // The object's JSON. Errors: not_found, …
  virtual boost::asio::awaitable<Result<std::string>> get(Gvr gvr, ObjectKey key, CallOptions options = {}) = 0;
  // GET of any path ("/version", "/openapi/v3"), body as it came.
  virtual boost::asio::awaitable<Result<std::string>> get_path(std::string path, CallOptions options = {}) = 0;
  // All pages; memory is bounded by one page, in bytes. Returns the list's resourceVersion. A continue token that
  // expired (410) restarts the list once.
  virtual boost::asio::awaitable<Result<std::string>> list(Gvr gvr, ListOptions options, ItemSink* sink) = 0;
  // One page. It has fewer objects than asked for where these are large: a page is never larger than
  // ClientOptions::max_page_bytes, unless it has one object.
  virtual boost::asio::awaitable<Result<ListPage>> list_page(Gvr gvr, ListOptions options, std::string continue_token,
                                                             ItemSink* sink) = 0;
  // Opens a watch with bookmarks. An HTTP status >= 300 is returned as its Error. Not retried: the watcher's business.
  virtual boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> open_watch(Gvr gvr, WatchOptions options) = 0;
  // Whether one resource is served: false only when well-formed discovery documents say so (404 of the group version
  // that the group list does not name either), an error when they could not be read.
  virtual boost::asio::awaitable<Result<bool>> served(Gvr gvr, CallOptions options = {}) = 0;
  // The same of all kinds, by one request; where that leaves a kind open, served() says it.
  virtual boost::asio::awaitable<Result<ServedKinds>> discover(CallOptions options = {}) = 0;

  // Requests that the server answered with a status below 500, of this reader and of what shares its connection.
  [[nodiscard]] virtual std::uint64_t answers() const = 0;
  [[nodiscard]] virtual Clock* clock() const = 0;
};

}  // namespace k8s
