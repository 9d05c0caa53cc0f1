// Keys of a person at a terminal, from the bytes that the terminal sends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gso {

// What a key means in a live view (live/view.h). Several keys can mean the same.
enum class Key { up, down, page_up, page_down, first, last, open, read_again, back, quit, help };

// The sequences are those that xterm and the terminals that follow it send (also the Linux console, tmux and screen),
// as what is written to the terminal are ANSI sequences without terminfo. Bytes without a meaning here are skipped, a
// sequence as a whole.
class KeyDecoder {
 public:
  // Keys whose bytes are complete. The rest is kept: a read can end in the middle of a sequence.
  [[nodiscard]] std::vector<Key> decode(std::string_view bytes);
  // An Escape is the last byte: the key, or the beginning of a sequence whose other bytes follow.
  [[nodiscard]] bool escape_is_open() const { return rest_ == "\x1b"; }
  // No more bytes have come for a while: it is the key.
  [[nodiscard]] std::vector<Key> end_escape();

 private:
  std::string rest_;
};

}  // namespace gso
