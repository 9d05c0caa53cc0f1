#include "k8sclient/auth/file_read.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace k8s {

Result<std::string> read_file(const std::string& path) {
  const auto problem = [&](int error) {
    return fail(error == ENOENT ? Reason::not_found : Reason::invalid,
                fmt::format("cannot read {}: {}", path, std::strerror(error)));
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return problem(errno);
  std::string out;
  char chunk[16384];
  while (true) {
    const std::size_t got = std::fread(chunk, 1, sizeof chunk, file.get());
    out.append(chunk, got);
    if (got < sizeof chunk) break;
    if (out.size() > kLargestConfigFile) {
      return fail(Reason::invalid, fmt::format("cannot read {}: larger than {} bytes", path, kLargestConfigFile));
    }
  }
  if (std::ferror(file.get()) != 0) return problem(errno);
  return out;
}

Interaction terminal_of_process() {
  Interaction out;
  if (isatty(STDIN_FILENO) == 1) out.input = STDIN_FILENO;
  if (isatty(STDERR_FILENO) == 1) out.messages = STDERR_FILENO;
  return out;
}

}  // namespace k8s
