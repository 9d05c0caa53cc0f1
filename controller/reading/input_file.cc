// Whole files and stdin into strings, up to a limit.
#include "controller/reading/input_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>

#include <fmt/format.h>

namespace gso {

k8s::Result<std::string> read_input(const std::string& name, std::istream& stdin_stream) {
  std::ifstream file;
  const bool from_stdin = name == "-";
  if (!from_stdin) {
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored)) {
      return k8s::fail(k8s::Reason::invalid, fmt::format("{} is a directory, not a file", name));
    }
    errno = 0;
    file.open(name, std::ios::binary);
    if (!file) {
      return k8s::fail(k8s::Reason::invalid, fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
    }
  }
  std::istream& stream = from_stdin ? stdin_stream : file;
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxInputBytes) {
      return k8s::fail(k8s::Reason::invalid, fmt::format("{}: has more than {} bytes", name, kMaxInputBytes));
    }
  }
  if (stream.bad()) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: cannot be read to its end", from_stdin ? "stdin" : name));
  }
  return text;
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const auto first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#' &&
        !(first == 0 && line.substr(0, line.find_last_not_of(" \t\r") + 1) == "---")) {
      return false;
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return true;
}

k8s::Result<std::string> read_written_input(const std::string& name, std::istream& stdin_stream) {
  auto text = read_input(name, stdin_stream);
  if (text && name == "-" && text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return k8s::fail(k8s::Reason::invalid, "stdin is empty; did the command before it fail?");
  }
  return text;
}

}  // namespace gso
