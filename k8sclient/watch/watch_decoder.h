// The watch stream's framing, pure: bytes in arbitrary pieces -> watch events. Knows no socket, no object kind.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/api/object_json.h"
#include "k8sclient/value/error.h"

namespace k8s {

// metav1.WatchEvent.type.
enum class WatchEventType { added, modified, deleted, bookmark, error };
[[nodiscard]] std::string_view to_string(WatchEventType type);  // "ADDED", …

struct WatchEvent {
  WatchEventType type = WatchEventType::added;
  // The object (for `error`: the metav1.Status). Lives until the next feed() or next(); kJsonPadding bytes past its
  // end are readable.
  std::string_view object_json;
  std::string resource_version;  // metadata.resourceVersion; empty for `error`.
  // A bookmark with the annotation k8s.io/initial-events-end: the initial events of a WatchList are complete.
  bool initial_events_end = false;
};

// Guarantees: any split of the same bytes gives the same events; never throws; memory is bounded by `max_line` plus
// one chunk, and returned after a large line.
// Errors (`decode`, then every further call fails the same way): a line longer than `max_line`, a line that is not a
// JSON watch event, an event type that is not known.
class WatchDecoder {
 public:
  // etcd bounds objects to 1.5 MiB by default; twice that leaves room for servers with a raised limit.
  static constexpr std::size_t kDefaultMaxLine = std::size_t{3} * 1024 * 1024;

  explicit WatchDecoder(std::size_t max_line = kDefaultMaxLine) : max_line_(max_line) {}

  void feed(std::string_view chunk);
  // The next complete event; nullopt when more bytes are needed. A last line without newline is never an event:
  // a broken connection may have cut it.
  [[nodiscard]] std::optional<Result<WatchEvent>> next();
  // Bytes of an incomplete line, dropped when the stream ended.
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - begin_; }

 private:
  std::optional<Result<WatchEvent>> fail_for_good(std::string message);

  std::string buffer_;
  std::size_t begin_ = 0;    // Start of the first unread line.
  std::size_t scanned_ = 0;  // No newline in [begin_, scanned_).
  std::size_t max_line_;
  std::optional<Error> broken_;
};

}  // namespace k8s
