// One frame of a watch in protobuf -> watch event. Pure; watch_decoder.h cuts the stream into frames.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "k8sclient/watch/watch_decoder.h"

namespace k8s {

// The event, or what is wrong with the frame. WatchEvent::object points into `frame`.
[[nodiscard]] std::expected<WatchEvent, std::string> read_protobuf_event(std::string_view frame);

}  // namespace k8s
