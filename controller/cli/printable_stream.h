// A stream for messages: what comes from a cluster or a file reaches the terminal line by line, with control characters
// escaped, whoever has written the message.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace gso {

class PrintableStream final : public std::ostream {
 public:
  // `behind` must outlive this stream.
  explicit PrintableStream(std::ostream& behind);
  ~PrintableStream() override;
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  class Buffer final : public std::streambuf {
   public:
    explicit Buffer(std::ostream& behind) : behind_(behind) {}
    // Writes what has no line end yet.
    void finish();

   protected:
    int_type overflow(int_type c) override;
    int sync() override;

   private:
    std::ostream& behind_;
    std::string line_;
  };
  Buffer buffer_;
};

}  // namespace gso
