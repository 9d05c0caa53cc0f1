// Watcher: keeps a sink in step with one resource (one scope of it: namespace, selectors) for as long as it runs.
// LIST by pages or WatchList, then WATCH with bookmarks; relists when it must. The protocol's rules are in
// watch_machine.h, this is the driver: requests, idle deadlines, backoff.
//
// Guarantees: the sink sees init, (init_apply|init_remove)*, init_done before anything else, and again at every
// relist; between an init and its init_done no other change. After stop(), no call.
// Errors never end it. Several watchers of one resource with different scopes may coexist.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"
#include "k8sclient/watch/store.h"
#include "k8sclient/watch/watch_decoder.h"
#include "k8sclient/watch/watch_machine.h"

namespace k8s {

// Each `json` is one object (list items lack apiVersion and kind), readable for kJsonPadding bytes past its end, and
// lives for the call only. With WatcherOptions::protobuf it can be protobuf instead (protobuf_object.h). An error that
// a sink returns is reported (WatcherOptions::failed) and changes nothing else.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void init() = 0;  // A complete view begins: start a fresh buffer.
  virtual Result<void> init_apply(std::string_view json) = 0;
  // Deleted while the view was still being sent: it must not be in the view that init_done completes.
  virtual Result<void> init_remove(std::string_view json) = 0;
  virtual void init_done() = 0;  // The buffer is complete: swap it in. What is not in it is gone.
  virtual Result<void> apply(std::string_view json) = 0;
  virtual Result<void> remove(std::string_view json) = 0;
  // Discovery says that the API does not exist on this server: known to be empty. Never after 403, 5xx or a timeout.
  virtual void absent() {}
  // An object that is too large to be read; `why` names it. What is known of it stays as it is, over a complete view
  // too: `metadata` is an object that has nothing but its metadata. It is no failure of the watch.
  virtual void skip(std::string_view metadata, const Error& why) {
    (void)metadata;
    (void)why;
  }
  // What was known is no longer trusted and a relist begins (410, undecodable stream, server back in time).
  virtual void on_relist() {}
};

// What can be concluded from a view now.
enum class ViewState : std::uint8_t {
  unread,   // No complete view yet, or none since the server went back in time.
  stale,    // Neither confirmed nor listed within max_age.
  recent,   // Its watch fails or is silent, but it was confirmed or listed within max_age.
  current,  // Its watch delivers, or discovery says that the API is absent; and it was confirmed within max_age.
};
struct View {
  ViewState state = ViewState::unread;
  // The last event, bookmark or first complete list, or when discovery last said that the API is absent; unset: none.
  std::optional<MonoTime> confirmed_at = std::nullopt;
};
enum class ApiState : std::uint8_t {
  unknown,  // Nothing has been listed, at all or since it was absent.
  absent,   // Discovery says so, and has not been contradicted or failed since.
  served,
};

struct WatcherOptions {
  std::string ns;  // Empty: all namespaces, or a cluster-scoped resource.
  LabelSelector label_selector;
  FieldSelector field_selector;
  bool watch_list = true;                 // Try WatchList first; falls back by itself where the server refuses.
  std::chrono::seconds min_timeout{290};  // `timeoutSeconds` of each watch is random in [min, max].
  std::chrono::seconds max_timeout{580};
  std::chrono::seconds timeout_margin{5};  // A watch that outlives its timeoutSeconds by this is dead.
  std::chrono::seconds bookmark_gap{150};  // Bookmarks come about every minute: longer silence is a dead peer.
  std::chrono::seconds initial_gap{30};    // Longest silence within a WatchList's initial events.
  Duration first_backoff = std::chrono::milliseconds(800);  // Doubled up to last_backoff; times 1..2 (jitter).
  Duration last_backoff = std::chrono::seconds(30);
  Duration backoff_reset = std::chrono::minutes(2);   // Without a failure for this long, backoff starts afresh.
  Duration refused_retry = std::chrono::seconds(10);  // After 403; times 1..3.
  Duration absent_retry = std::chrono::seconds(60);   // After 404; times 1..1.5.
  // How old a view may be (ViewState). Longer than two bookmarks are apart, and than a watch takes to open again.
  Duration max_age = std::chrono::seconds(150);
  // A watch that cannot be opened for this long, while the server answers it (403) or other requests, is replaced by
  // lists, one at a time: they show what became of what was begun, and whether the resourceVersion is the reason.
  Duration list_after = std::chrono::minutes(1);
  // A complete view is asked for again when a watch ends this long after the last one, times 0.8..1: what a server has
  // failed to send is then known. A watch lives for up to ten minutes more. 0: only when the protocol wants it.
  Duration renew_after = std::chrono::minutes(49);
  // Ask for protobuf, which is less work for the server than JSON. For a sink that reads both: lists are in JSON, and
  // so are the watches of a server or proxy that writes no protobuf.
  bool protobuf = false;
  std::size_t max_line = WatchDecoder::kDefaultMaxLine;
  std::uint64_t seed = 0;  // Of timeouts and jitter.
  // The sink's view is complete, or the API is absent.
  std::function<void()> complete = [] {};
  // Something failed and will be retried, or an object is too large; `forbidden` needs somebody's RBAC change.
  std::function<void(const Error&)> failed = [](const Error&) {};
};

struct WatcherStats {
  std::uint64_t lists = 0;    // Complete views: LISTs and WatchLists that reached their end.
  std::uint64_t watches = 0;  // Streams opened.
  std::uint64_t events = 0;   // Added, modified, deleted.
  std::uint64_t bookmarks = 0;
  std::uint64_t relists = 0;
  std::uint64_t malformed = 0;  // Objects that the sink refused.
  std::uint64_t too_large = 0;  // Objects that were skipped.
};

class Watcher {
 public:
  // Everything passed must outlive run().
  Watcher(Reader* client, Gvr gvr, WatcherOptions options, WatchSink* sink);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Runs until stop(). Never throws, never fails. Call once.
  boost::asio::awaitable<void> run();
  // Ends run() promptly, from any callback or coroutine of the same thread; the sink is not called again. Idempotent.
  void stop();
  // Discovery has found the API, e.g. a new CRD: ends the pause of a watch that knows it as absent, and no other one.
  void retry_now();
  // Nothing that is known is trusted any more: the view is unread until another list is complete, which begins at once.
  void list_again();

  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] const WatcherStats& stats() const { return stats_; }
  // The last thing seen was an error, which was reported: no list has come whole and no stream was opened since.
  [[nodiscard]] bool failing() const { return failed_at_ == opened(); }
  // The one place that decides whether the sink's objects are those of the server.
  [[nodiscard]] View view() const;
  [[nodiscard]] ApiState api() const { return api_; }

 private:
  boost::asio::awaitable<void> loop();
  // For every action but start_list, which needs none.
  boost::asio::awaitable<WatchInput> perform(WatchAction ask);
  boost::asio::awaitable<WatchInput> list_page();
  boost::asio::awaitable<WatchInput> read_version();
  boost::asio::awaitable<WatchInput> open(bool initial_events);
  boost::asio::awaitable<WatchInput> read();
  boost::asio::awaitable<void> pause(WatchPause kind, std::optional<Error> error);
  boost::asio::awaitable<WatchPause> report(WatchStep outcome);
  std::optional<WatchInput> buffered_event();
  void take(const WatchStep& outcome);
  void emit(WatchEmit what);
  void deliver(const Result<void>& result);
  void skip(std::string_view metadata, Error why);
  void report(const Error& error);
  // The error with what is watched before it.
  [[nodiscard]] Error named(Error error) const;
  // Options of a list or a watch of the scope.
  template <class Options>
  [[nodiscard]] Options of_scope() const;
  [[nodiscard]] std::uint64_t opened() const { return stats_.watches + stats_.lists; }
  void count(const WatchInput& input);
  void note_newest(std::string_view object, const std::string& resource_version, bool deleted);
  Failed open_failed(Error error);
  Duration next_backoff();
  // `by_watch`: by an event or a bookmark; else by a list.
  void confirm(bool by_watch);
  [[nodiscard]] bool must_list();
  void start_over();

  Reader* client_;
  Clock* clock_;
  Gvr gvr_;
  WatcherOptions options_;
  WatchSink* sink_;
  bool watch_list_;  // Next time.
  WatchState state_;
  WatcherStats stats_;
  std::optional<std::uint64_t> failed_at_;  // What had been opened by then.
  Jitter jitter_;
  std::unique_ptr<Signal> wake_;
  boost::asio::cancellation_signal cancel_;
  bool running_ = false;
  bool stopping_ = false;

  std::unique_ptr<ByteStream> stream_;
  WatchDecoder decoder_;
  std::string_view current_object_;  // Of the event being stepped; points into decoder_.
  std::size_t current_skipped_ = 0;  // WatchEvent::skipped_bytes of it.
  MonoTime opened_at_;
  MonoTime stream_deadline_;
  // Of the view.
  struct Newest {
    ObjectKey key;
    std::string resource_version;
    bool deleted = false;
  };
  std::optional<Newest> newest_;  // The change of the newest version.
  MonoTime listed_at_;
  MonoTime renew_at_ = MonoTime::never();
  std::optional<MonoTime> confirmed_at_;
  bool complete_ = false;  // And trusted.
  ApiState api_ = ApiState::unknown;
  bool delivers_ = false;    // The last watch that was opened has not failed.
  bool distrusted_ = false;  // list_again() was called, and the loop begins again.
  int failures_ = 0;         // In a row, for the backoff.
  MonoTime last_failure_;
  // How the last watch opened. `refused`: it did not, although the server answers it or other requests.
  enum class Opening : std::uint8_t { works, fails, refused } opening_ = Opening::works;
  std::uint64_t answers_ = 0;  // The client's, when the last watch failed to open.
};

// --- StoreSink<T>: a WatchSink that projects each object and keeps a Store<T> in step.

// A malformed object is reported, and never ends the watch: the object that the store already had stays
// (over a relist too), so that one bad object cannot look like a deletion.
template <class T>
class StoreSink final : public WatchSink {
 public:
  using Projector = Result<T> (*)(std::string_view json);
  using Reviser = Revision (*)(std::string_view json);

  // `store` must outlive the sink. `revise`: for kinds most of whose events change nothing that is kept.
  StoreSink(Store<T>* store, Projector project, Reviser revise = nullptr)
      : store_(store), project_(project), revise_(revise) {}

  void init() override { store_->init(); }
  Result<void> init_apply(std::string_view json) override {
    Result<T> object = project_(json);
    if (!object) {
      const Result<ObjectKey> key = read_object_key(json);
      keep(key);
      return refused(key, object.error());
    }
    store_->init_apply(*std::move(object), revision_of(json).content);
    return {};
  }
  Result<void> init_remove(std::string_view json) override {
    const Result<ObjectKey> key = read_object_key(json);
    if (!key) return refused(key, key.error());
    store_->init_erase(*key);
    return {};
  }
  void init_done() override { store_->init_done(); }
  Result<void> apply(std::string_view json) override {
    const Revision now = revision_of(json);
    if (store_->renew(now)) return {};
    Result<T> object = project_(json);
    if (!object) return refused(read_object_key(json), object.error());
    store_->apply(*std::move(object), now.content);
    return {};
  }
  Result<void> remove(std::string_view json) override {
    const Result<ObjectKey> key = read_object_key(json);
    if (!key) return refused(key, key.error());
    store_->erase(*key);
    return {};
  }
  void absent() override { store_->mark_absent(); }
  void skip(std::string_view metadata, const Error& /*why*/) override { keep(read_object_key(metadata)); }

 private:
  [[nodiscard]] Revision revision_of(std::string_view json) const { return revise_ ? revise_(json) : Revision{}; }
  // What the store has stays, over a relist too.
  void keep(const Result<ObjectKey>& key) {
    if (const T* before = key ? store_->find(*key) : nullptr) store_->init_apply(*before);
  }
  Result<void> refused(const Result<ObjectKey>& key, const Error& why) {
    const std::string name = key ? to_string(*key) : std::string("an object without a readable name");
    return fail(Reason::decode, name + " is kept as it was: " + why.message);
  }

  Store<T>* store_;
  Projector project_;
  Reviser revise_;
};

}  // namespace k8s
