// Tar: headers of 512 bytes. Layout: POSIX.1-2017, pax, "ustar Interchange Format". Gzip: by zlib.
#include "controller/commands/shared/archive.h"

#include <fmt/format.h>
#define ZLIB_CONST  // The input is not written to.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

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

namespace {

constexpr int kGzipFormat = 16;  // Added to the window's bits: a header of gzip, where zlib's own is the default.
constexpr int kUsualMemory = 8;

// A stream that ends with its scope.
class Deflater {
 public:
  Deflater() = default;
  ~Deflater() {
    if (ready_) (void)deflateEnd(&stream_);
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // A code of zlib.
  int begin() {
    const int code = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kUsualMemory,
                                  Z_DEFAULT_STRATEGY);
    ready_ = code == Z_OK;
    return code;
  }
  z_stream& operator*() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

k8s::Error failure(int code) {
  return {.reason = k8s::Reason::decode,
          .message = fmt::format("the archive cannot be compressed: zlib answers {}", code)};
}

}  // namespace

k8s::Result<std::string> gzipped(std::string_view bytes) {
  Deflater deflater;
  if (const int code = deflater.begin(); code != Z_OK) return std::unexpected(failure(code));
  z_stream& stream = *deflater;
  std::string out;
  std::array<char, 65536> piece{};
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t size = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<const Bytef*>(bytes.data());
      stream.avail_in = static_cast<uInt>(size);
      bytes.remove_prefix(size);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    code = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) return std::unexpected(failure(code));
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  return out;
}

}  // namespace gso
