#include "k8sclient/value/encoding.h"

#include <openssl/evp.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace k8s {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return to_lower(c); });
  return out;
}

bool is_valid_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 && first <= 0xf4  ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

std::string replace_invalid_utf8(std::string text) {
  if (is_valid_utf8(text)) return text;
  std::string out;
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t length = utf8_sequence(std::string_view(text).substr(valid));
    out += length == 0 ? std::string("\ufffd") : text.substr(valid, length);
    valid += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string sha256(std::string_view text) {
  std::string out(32, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const int done = EVP_Digest(text.data(), text.size(), bytes, nullptr, EVP_sha256(), nullptr);
  return done == 1 ? out : throw std::bad_alloc();  // It needs memory, and cannot fail otherwise.
}

Print::Print(std::string_view text) {
  const std::string digest = sha256(text);
  std::memcpy(&first, digest.data(), sizeof first);
  std::memcpy(&second, digest.data() + sizeof first, sizeof second);
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string clean(text);
  std::erase_if(clean, [](char c) { return c == '\n' || c == '\r'; });
  if (clean.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = clean.size() - std::min(clean.size(), clean.find_last_not_of('=') + 1);
  // OpenSSL's block decoder takes '=' anywhere, and spaces around.
  const bool alphabet = std::ranges::all_of(std::string_view(clean).substr(0, clean.size() - padding),
                                            [](char c) { return is_alphanumeric(c) || c == '+' || c == '/'; });
  if (padding > 2 || !alphabet) return std::nullopt;
  std::string out(clean.size() / 4 * 3, '\0');
  const auto* input = reinterpret_cast<const unsigned char*>(clean.data());
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), input, static_cast<int>(clean.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

std::string base64_encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL writes a terminating zero.
  const auto* input = reinterpret_cast<const unsigned char*>(bytes.data());
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), input, static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace k8s
