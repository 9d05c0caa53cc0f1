#include "controller/commands/live/keys.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

namespace gso {

namespace {

constexpr char kEscape = '\x1b';
// A sequence that is longer is none: what follows an Escape is noise.
constexpr std::size_t kLongestSequence = 32;

struct Meaning {
  std::string_view bytes;
  Key key;
};
// Cursor keys send ESC [ in the normal mode and ESC O in the application mode, which a program before us may have left
// on.
constexpr Meaning kMeanings[] = {
    {"k", Key::up},          {"\x1b[A", Key::up},    {"\x1bOA", Key::up},       {"j", Key::down},
    {"\x1b[B", Key::down},   {"\x1bOB", Key::down},  {"\x1b[5~", Key::page_up}, {"\x1b[6~", Key::page_down},
    {"g", Key::first},       {"\x1b[H", Key::first}, {"\x1bOH", Key::first},    {"\x1b[1~", Key::first},
    {"\x1b[7~", Key::first}, {"G", Key::last},       {"\x1b[F", Key::last},     {"\x1bOF", Key::last},
    {"\x1b[4~", Key::last},  {"\x1b[8~", Key::last}, {"e", Key::open},          {"\r", Key::open},
    {"\n", Key::open},       {"\x1bOM", Key::open},  {"r", Key::read_again},    {"\x1b", Key::back},
    {"q", Key::quit},        {"?", Key::help},
};

std::optional<Key> meaning_of(std::string_view bytes) {
  const auto* const found = std::ranges::find(kMeanings, bytes, &Meaning::bytes);
  if (found == std::end(kMeanings)) return std::nullopt;
  return found->key;
}

bool within(char c, char first, char last) {
  return c >= first && c <= last;
}

// The length of the first key in the text; 0: more bytes are needed. ECMA-48: parameters, intermediates, one final
// byte.
std::size_t length_of_key(std::string_view text) {
  if (text.front() != kEscape) return 1;
  if (text.size() == 1) return 0;
  const bool single_shift = text[1] == 'O';
  // Two keys that came together. With Alt terminals send the same bytes; no key with Alt has a meaning.
  if (text[1] != '[' && !single_shift) return 1;
  std::size_t at = 2;
  if (!single_shift) {
    while (at < text.size() && within(text[at], ' ', '?')) ++at;
  }
  if (at >= kLongestSequence) return at;
  if (at == text.size()) return 0;
  // Another byte than a final one ends the sequence and begins the next key: an Escape, for example.
  return within(text[at], '@', '~') ? at + 1 : at;
}

}  // namespace

std::vector<Key> KeyDecoder::decode(std::string_view bytes) {
  rest_ += bytes;
  std::vector<Key> out;
  std::size_t at = 0;
  while (at < rest_.size()) {
    const std::string_view left = std::string_view(rest_).substr(at);
    const std::size_t length = length_of_key(left);
    if (length == 0) break;
    if (const std::optional<Key> key = meaning_of(left.substr(0, length))) out.push_back(*key);
    at += length;
  }
  rest_.erase(0, at);
  return out;
}

std::vector<Key> KeyDecoder::end_escape() {
  if (!escape_is_open()) return {};
  rest_.clear();
  return {Key::back};
}

}  // namespace gso
