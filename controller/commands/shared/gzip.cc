#include "controller/commands/shared/gzip.h"

#define ZLIB_CONST  // The input is not written to.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace gso {
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
