// See source_lines.h.
#include "reconcilers/lint/source_lines.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace gso {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

void append_utf8(std::string& out, std::uint32_t code) {
  const auto continued = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    continued(6);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    continued(12);
    continued(6);
  }
  if (code >= 0x80) {
    continued(0);
  }
}

// A text in UTF-16, as Windows' shells write one, in UTF-8; nullopt for any other. A lone surrogate becomes U+FFFD.
std::optional<std::string> from_utf16(std::string_view text) {
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) {
    return std::nullopt;
  }
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(text[at]);
    const auto second = static_cast<unsigned char>(text[at + 1]);
    return little ? static_cast<std::uint32_t>(second << 8 | first) : static_cast<std::uint32_t>(first << 8 | second);
  };
  std::string out;
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    std::uint32_t code = unit(at);
    const std::uint32_t low = at + 3 < text.size() ? unit(at + 2) : 0;
    if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = 0xfffd;
    }
    append_utf8(out, code);
  }
  return out;
}

}  // namespace

SourceLines::SourceLines(std::string_view text) : text_(text) {
  if (auto converted = from_utf16(text)) {
    converted_ = *std::move(converted);
    text_ = converted_;
  }
}

std::string_view SourceLines::line(int number) const {
  const auto wanted = static_cast<std::size_t>(number);
  while (starts_.size() < wanted) {
    const auto end = text_.find_first_of("\r\n", starts_.back());
    if (end == std::string_view::npos) return {};
    starts_.push_back(end + (text_.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  if (number < 1) return {};
  std::string_view out = text_.substr(starts_[wanted - 1]);
  out = out.substr(0, out.find_first_of("\r\n"));
  return out.starts_with(kByteOrderMark) ? out.substr(kByteOrderMark.size()) : out;  // The mark takes no column.
}

}  // namespace gso
