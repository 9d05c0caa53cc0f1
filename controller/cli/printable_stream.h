// A stream for messages: what comes from a cluster or a file reaches the terminal line by line, with control characters
// escaped, whoever has written the message, and broken between words.
#pragma once

#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string>

namespace gso {

class PrintableStream final : public std::ostream {
 public:
  // `behind` must outlive this stream. `columns`: of the terminal behind it; 0: lines stay as long as they are.
  explicit PrintableStream(std::ostream& behind, std::size_t columns = 0);
  ~PrintableStream() override;
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  class Buffer final : public std::streambuf {
   public:
    Buffer(std::ostream& behind, std::size_t columns) : behind_(behind), columns_(columns) {}
    // Writes what has no line end yet.
    void finish();

   protected:
    int_type overflow(int_type c) override;
    int sync() override;

   private:
    std::ostream& behind_;
    std::size_t columns_;
    std::string line_;
  };
  Buffer buffer_;
};

}  // namespace gso
