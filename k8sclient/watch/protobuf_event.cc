// The field numbers are those of generated.proto in k8s.io/apimachinery (pkg/apis/meta/v1).
#include "k8sclient/watch/protobuf_event.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "k8sclient/value/protobuf_object.h"
#include "k8sclient/value/utf8.h"

namespace k8s {
namespace {

namespace pb = protobuf;
using protozero::pbf_reader;

struct Frame {
  std::string_view type;
  std::string_view object;
};

Frame read_frame(std::string_view bytes) {
  constexpr std::uint32_t kType = pb::text(1);
  constexpr std::uint32_t kObject = pb::text(2);
  constexpr std::uint32_t kRaw = pb::text(1);  // Of the RawExtension.
  pbf_reader event(bytes.data(), bytes.size());
  Frame out;
  while (event.next()) {
    switch (event.tag_and_type()) {
      case kType:
        out.type = pb::view(event);
        break;
      case kObject:
        out.object = pb::only_text(event.get_message(), kRaw);
        break;
      default:
        event.skip();
    }
  }
  return out;
}

void read_meta(pbf_reader meta, WatchEvent& event) {
  constexpr std::uint32_t kResourceVersion = pb::text(6);
  constexpr std::uint32_t kAnnotations = pb::text(12);
  while (meta.next()) {
    switch (meta.tag_and_type()) {
      case kResourceVersion:
        event.resource_version = pb::view(meta);
        if (event.type != WatchEventType::bookmark) return;
        break;
      case kAnnotations: {
        const pb::MapEntry annotation = pb::read_map_entry(meta.get_message());
        if (annotation.key == kInitialEventsEnd) event.initial_events_end = annotation.value == "true";
        break;
      }
      default:
        meta.skip();
    }
  }
}

constexpr std::string_view kNotReadable = "a frame is not a watch event in protobuf";

}  // namespace

std::expected<WatchEvent, std::string> read_protobuf_event(std::string_view frame) {
  Frame read;
  if (!read_protobuf([&] { read = read_frame(frame); })) return std::unexpected(std::string(kNotReadable));
  const std::optional<WatchEventType> type = watch_event_type(read.type);
  if (!type) {
    const std::string shown = replace_invalid_utf8(std::string(read.type.substr(0, 60)));
    return std::unexpected(fmt::format("a watch event has the unknown type \"{}\"", shown));
  }
  const std::optional<ProtobufObject> object = open_protobuf(read.object);
  if (!object) return std::unexpected(std::string("a watch event's object is not in Kubernetes' protobuf"));
  WatchEvent event;
  event.type = *type;
  event.object = read.object;
  if (*type == WatchEventType::error) return event;
  if (!read_protobuf([&] { read_meta(pb::meta_of(object->message), event); })) {
    return std::unexpected(std::string(kNotReadable));
  }
  if (event.resource_version.empty()) {
    return std::unexpected(std::string("a watch event has no metadata.resourceVersion"));
  }
  return event;
}

}  // namespace k8s
