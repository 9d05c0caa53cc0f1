// Headers of 512 bytes. Layout: POSIX.1-2017, pax, "ustar Interchange Format".
#include "controller/commands/shared/tar_archive.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace gso {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameSize = 100;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumSize = 8;

void put(std::string& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void TarArchive::add(std::string name, std::string_view content) {
  name.resize(std::min(name.size(), kNameSize));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(modified_.time_since_epoch()).count();
  std::string header(kBlock, '\0');
  put(header, 0, name);
  put(header, 100, "0000600");
  put(header, 108, "0000000");
  put(header, 116, "0000000");
  put(header, 124, fmt::format("{:011o}", content.size()));
  put(header, 136, fmt::format("{:011o}", std::max<std::int64_t>(0, seconds)));
  put(header, kSumAt, std::string(kSumSize, ' '));
  put(header, 156, "0");
  put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0U,
                                       [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  put(header, kSumAt, fmt::format("{:06o}", sum));
  header[kSumAt + 6] = '\0';
  bytes_ += header;
  bytes_ += content;
  bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

std::string TarArchive::finish() && {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

}  // namespace gso
