// Identity: the key of a cache, from everything that its answer depends on.
#pragma once

#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gso {

// Values one after the other, as bytes: an identity is only compared, and one is made for each assessment of a node.
class Identity {
 public:
  template <class Value>
    requires std::is_pointer_v<Value> || std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  Identity& operator<<(Value value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(Value)>>(value);
    text_.append(bytes.data(), bytes.size());
    return *this;
  }
  // With its length, so that two texts never look like two others.
  Identity& operator<<(std::string_view text) {
    *this << text.size();
    text_.append(text);
    return *this;
  }
  Identity& operator<<(const std::string& text) { return *this << std::string_view(text); }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace gso
