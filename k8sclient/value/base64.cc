#include "k8sclient/value/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace k8s {

std::optional<std::string> base64_decode(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  std::copy_if(text.begin(), text.end(), std::back_inserter(clean), [](char c) { return c != '\n' && c != '\r'; });
  if (clean.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = clean.size() - std::min(clean.size(), clean.find_last_not_of('=') + 1);
  // OpenSSL's block decoder takes '=' anywhere, and spaces around.
  const bool alphabet = std::all_of(clean.begin(), clean.end() - static_cast<std::ptrdiff_t>(padding), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
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
