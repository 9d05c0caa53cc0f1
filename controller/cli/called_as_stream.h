// Output of kubectl's plugin: the commands that it proposes begin with the name by which the program was called,
// because the other one need not be installed.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

namespace gso {

class CalledAsStream final : public std::ostream {
 public:
  // `gpu-sharing-operator COMMAND` reaches `behind` as `name COMMAND`, for the names of `commands`. `behind` must
  // outlive this stream.
  CalledAsStream(std::ostream& behind, std::string name, std::vector<std::string> commands);
  ~CalledAsStream() override;
  CalledAsStream(const CalledAsStream&) = delete;
  CalledAsStream& operator=(const CalledAsStream&) = delete;

 private:
  class Buffer final : public std::streambuf {
   public:
    Buffer(std::ostream& behind, std::string name, std::vector<std::string> commands)
        : behind_(behind), name_(std::move(name)), commands_(std::move(commands)) {}
    // Writes what has no line end yet.
    bool finish();

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    [[nodiscard]] bool names_command(std::size_t at) const;

    std::ostream& behind_;
    std::string name_;
    std::vector<std::string> commands_;
    std::string line_;
  };
  Buffer buffer_;
};

}  // namespace gso
