#include "k8sclient/value/utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>

namespace k8s {

namespace {

// Bytes of the valid UTF-8 sequence at the front of `text`, or 0.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xf0 && first <= 0xf4  ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string replace_invalid_utf8(std::string text) {
  if (is_valid_utf8(text)) return text;
  std::string out;
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t length = sequence_length(std::string_view(text).substr(valid));
    out += length == 0 ? std::string("\ufffd") : text.substr(valid, length);
    valid += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace k8s
