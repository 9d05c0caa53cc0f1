// The bytes of a .gz file, for tests of what is written compressed.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <string>

namespace gso {

// A .gz file of one member; empty if it is none.
inline std::string unpacked(std::string bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 4096> piece{};
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  EXPECT_EQ(code, Z_STREAM_END) << "the whole of it";
  EXPECT_EQ(stream.avail_in, 0U) << "and nothing behind it";
  (void)inflateEnd(&stream);
  return out;
}

}  // namespace gso
