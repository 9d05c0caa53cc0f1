// The bytes of a .gz file, for tests of what is written compressed.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace gso {

// A .gz file of one member; empty if it is none.
inline std::string unpacked(std::string bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out(64 << 20, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END) << "the whole of it";
  out.resize(stream.total_out);
  EXPECT_EQ(stream.avail_in, 0U) << "and nothing behind it";
  (void)inflateEnd(&stream);
  return out;
}

}  // namespace gso
