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
[[nodiscard]] std::optional<WatchEventType> watch_event_type(std::string_view text);

// The annotation of the bookmark that ends the initial events of a WatchList.
inline constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

// How a server writes a watch: a line of JSON for each event, or a frame of protobuf behind its length.
enum class WatchEncoding { json, protobuf };

struct WatchEvent {
  WatchEventType type = WatchEventType::added;
  // The object (for `error`: the metav1.Status) as the server wrote it: JSON, or protobuf in Kubernetes' envelope
  // (protobuf_object.h). Lives until the next feed() or next(); kJsonPadding bytes past its end are readable.
  std::string_view object;
  std::string resource_version;  // metadata.resourceVersion; empty for `error`.
  // A bookmark with the annotation k8s.io/initial-events-end: the initial events of a WatchList are complete.
  bool initial_events_end = false;
  // The bytes of a line that was too long to be held; 0: it was not. `object` then has the name, namespace, uid and
  // resourceVersion that its beginning says, and nothing else.
  std::size_t skipped_bytes = 0;
};

// Guarantees: any split of the same bytes gives the same events; never throws; memory is bounded by `max_line` plus
// one chunk, and returned after a large line. A frame is a line here, too. A line longer than `max_line` is read over
// to its end, and is an event without its object: one object ends no watch. Errors (`decode`, then every further call
// fails the same way): a line that is not a watch event, an event type that is not known; a longer line whose beginning
// does not name its object, or a longer frame.
class WatchDecoder {
 public:
  // etcd bounds objects to 1.5 MiB by default, in protobuf. In JSON a byte of it is up to six ("\u003c").
  static constexpr std::size_t kDefaultMaxLine = std::size_t{16} * 1024 * 1024;

  explicit WatchDecoder(std::size_t max_line = kDefaultMaxLine, WatchEncoding encoding = WatchEncoding::json)
      : max_line_(max_line), encoding_(encoding) {}

  void feed(std::string_view chunk);
  // The next complete event; nullopt when more bytes are needed. A last line without newline is never an event:
  // a broken connection may have cut it. So is a frame that is shorter than its length.
  [[nodiscard]] std::optional<Result<WatchEvent>> next();
  // Bytes held of an incomplete line, dropped when the stream ended.
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - begin_; }
  // Bytes that can be held without moving what is.
  [[nodiscard]] std::size_t room() const { return buffer_.capacity(); }

 private:
  // A line until its end has come. Only its beginning was read.
  struct Skipped {
    WatchEvent event;    // Without its object:
    std::string object;  // that, with padding.
    bool ended = false;
  };
  void skip_line();
  // The part of `chunk` behind the end of the line that is read over.
  std::string_view skip(std::string_view chunk);
  // The next line that is complete and not blank; nullopt: more bytes are needed, or it is too long (broken_).
  std::optional<std::string_view> next_line();
  std::optional<std::string_view> next_frame();
  void fail_for_good(std::string message);
  void release();

  std::string buffer_;
  std::size_t begin_ = 0;    // Start of the first unread line.
  std::size_t scanned_ = 0;  // No newline in [begin_, scanned_).
  std::size_t max_line_;
  WatchEncoding encoding_;
  std::optional<Skipped> skipped_;
  std::string lent_;  // What the last event views, if its line was skipped.
  std::optional<Error> broken_;
};

}  // namespace k8s
