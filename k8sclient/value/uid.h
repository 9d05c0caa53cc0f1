// Uid: an object's uid in 24 bytes and without an allocation where it is a UUID, as API servers generate them; four of
// every five objects that are held are known only to be compared and deleted by it. Any other text is kept as it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "k8sclient/value/interned.h"

namespace k8s {

class Uid {
 public:
  Uid() = default;  // No uid.
  // Converts freely: a uid is text everywhere but in stores.
  Uid(std::string_view text);
  Uid(const std::string& text) : Uid(std::string_view(text)) {}
  Uid(const char* text) : Uid(std::string_view(text)) {}

  // Just what it was made of.
  [[nodiscard]] std::string str() const;
  operator std::string() const { return str(); }
  [[nodiscard]] bool empty() const { return *this == Uid(); }
  friend bool operator==(const Uid&, const Uid&) = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};  // Of a UUID in lower case; all zero: see other_.
  Interned other_;
};

}  // namespace k8s
