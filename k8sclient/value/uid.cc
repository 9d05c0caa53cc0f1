// The text of a UUID <-> 16 bytes.
#include "k8sclient/value/uid.h"

#include <optional>

namespace k8s {
namespace {

constexpr std::size_t kTextSize = 36;
constexpr std::string_view kDigits = "0123456789abcdef";

bool is_dash(std::size_t at) {
  return at == 8 || at == 13 || at == 18 || at == 23;
}

// nullopt unless writing the bytes gives the same text again.
std::optional<std::array<std::uint8_t, 16>> parse(std::string_view text) {
  if (text.size() != kTextSize) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{};
  std::size_t digits = 0;
  for (std::size_t at = 0; at < kTextSize; ++at) {
    if (is_dash(at)) {
      if (text[at] != '-') return std::nullopt;
      continue;
    }
    const auto digit = kDigits.find(text[at]);
    if (digit == std::string_view::npos) return std::nullopt;
    bytes[digits / 2] = static_cast<std::uint8_t>(bytes[digits / 2] << 4U | digit);
    ++digits;
  }
  return bytes;
}

}  // namespace

Uid::Uid(std::string_view text) {
  const auto bytes = parse(text);
  if (bytes && *bytes != decltype(bytes_){}) {
    bytes_ = *bytes;
  } else {
    other_ = Interned(text);
  }
}

std::string Uid::str() const {
  if (bytes_ == decltype(bytes_){}) return std::string(other_.view());
  std::string out;
  out.reserve(kTextSize);
  for (const std::uint8_t byte : bytes_) {
    if (is_dash(out.size())) out += '-';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

}  // namespace k8s
