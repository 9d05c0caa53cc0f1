// See called_as_stream.h.
#include "controller/cli/called_as_stream.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace gso {
namespace {

constexpr std::string_view kProgram = "gpu-sharing-operator ";

}  // namespace

CalledAsStream::CalledAsStream(std::ostream& behind, std::string name, std::vector<std::string> commands)
    : std::ostream(nullptr), buffer_(behind, std::move(name) + " ", std::move(commands)) {
  rdbuf(&buffer_);
}

CalledAsStream::~CalledAsStream() {
  buffer_.finish();
}

bool CalledAsStream::Buffer::names_command(std::size_t at) const {
  const std::string_view rest = std::string_view(line_).substr(at);
  const auto end = std::ranges::find_if(rest, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; });
  const std::string_view word(rest.begin(), end);
  return std::ranges::find(commands_, word) != commands_.end();
}

bool CalledAsStream::Buffer::finish() {
  std::size_t written = 0;
  for (std::size_t at = line_.find(kProgram); at != std::string::npos; at = line_.find(kProgram, at)) {
    const std::size_t behind = at + kProgram.size();
    if (names_command(behind)) {
      behind_.write(line_.data() + written, static_cast<std::streamsize>(at - written));
      behind_ << name_;
      written = behind;
    }
    at = behind;
  }
  behind_.write(line_.data() + written, static_cast<std::streamsize>(line_.size() - written));
  line_.clear();
  return static_cast<bool>(behind_);
}

CalledAsStream::Buffer::int_type CalledAsStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize CalledAsStream::Buffer::xsputn(const char* text, std::streamsize size) {
  for (std::string_view rest(text, static_cast<std::size_t>(size)); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::size_t length = end == std::string_view::npos ? rest.size() : end + 1;
    line_ += rest.substr(0, length);
    rest.remove_prefix(length);
    if (end != std::string_view::npos && !finish()) return 0;
  }
  return size;
}

int CalledAsStream::Buffer::sync() {
  if (!finish()) return -1;
  behind_.flush();
  return behind_ ? 0 : -1;
}

}  // namespace gso
