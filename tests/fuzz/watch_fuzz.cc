// Any bytes as a watch stream, cut into pieces of any size: no crash, the events of the uncut stream, and after an
// error the same error again, in UTF-8. The first two bytes choose the pieces, the longest line and the encoding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/object_json.h"
#include "k8sclient/api/status.h"
#include "k8sclient/watch/watch_decoder.h"

namespace {

struct Seen {
  std::vector<std::string> events;
  std::string error;
  friend bool operator==(const Seen&, const Seen&) = default;
};

void drain(k8s::WatchDecoder& decoder, Seen& seen) {
  while (auto next = decoder.next()) {
    if (!*next) {
      const std::string message = next->error().message;
      static_cast<void>(nlohmann::json(message).dump());  // Throws where it is not UTF-8.
      if (!seen.error.empty() && seen.error != message) std::abort();
      seen.error = message;
      return;
    }
    if (!seen.error.empty()) std::abort();
    const k8s::WatchEvent& event = **next;
    if (event.object.empty()) std::abort();
    static_cast<void>(k8s::read_object_key(event.object));
    if (event.type == k8s::WatchEventType::error)
      static_cast<void>(nlohmann::json(k8s::error_from_answer(0, event.object, "", "watch").message).dump());
    std::string text(k8s::to_string(event.type));
    text += ' ' + event.resource_version + (event.initial_events_end ? " end " : " ");
    seen.events.push_back(text.append(event.object));
  }
}

// `seed` gives the sizes of the pieces; 0: one piece.
Seen read(std::string_view stream, std::size_t max_line, k8s::WatchEncoding encoding, std::uint32_t seed) {
  constexpr std::size_t kLength = 4;  // Before a frame.
  k8s::WatchDecoder decoder(max_line, encoding);
  Seen seen;
  for (std::uint32_t state = seed; !stream.empty();) {
    state = state * 1'664'525U + 1'013'904'223U;
    const std::size_t size = seed == 0 ? stream.size() : std::min<std::size_t>(1 + (state >> 16) % 40, stream.size());
    decoder.feed(stream.substr(0, size));
    stream.remove_prefix(size);
    drain(decoder, seen);
    if (seen.error.empty() && decoder.pending() > max_line + kLength) std::abort();
  }
  drain(decoder, seen);
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t max_line = data[1] % 2 == 0 ? k8s::WatchDecoder::kDefaultMaxLine : 16U + data[1];
  const auto encoding = data[1] >= 0xfe ? k8s::WatchEncoding::protobuf : k8s::WatchEncoding::json;
  if (read(stream, max_line, encoding, 0) != read(stream, max_line, encoding, 1U + data[0])) std::abort();
  return 0;
}
