// What a decoder makes of a watch whose bytes arrive in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/watch/watch_decoder.h"

namespace k8s::test {

// "TYPE rv" for each event, "end" with the mark, and what `show` says of it; at the end of a broken stream
// "error: message".
template <class Show>
std::vector<std::string> drain(WatchDecoder& decoder, Show show) {
  std::vector<std::string> out;
  while (auto next = decoder.next()) {
    if (!*next) {
      out.push_back("error: " + next->error().message);
      break;
    }
    const WatchEvent& event = **next;
    out.push_back(std::string(to_string(event.type)) + " " + event.resource_version +
                  (event.initial_events_end ? " end" : "") + show(event));
  }
  return out;
}

// What `read` finds in the decoder after each piece of so many bytes, one after the other.
template <class Read>
std::vector<std::string> in_pieces(WatchDecoder& decoder, std::string_view bytes, std::size_t piece, Read read) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    decoder.feed(bytes.substr(at, piece));
    for (std::string& one : read(decoder)) events.push_back(std::move(one));
  }
  return events;
}

}  // namespace k8s::test
