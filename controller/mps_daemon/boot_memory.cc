// See boot_memory.h.
#include "controller/mps_daemon/boot_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

using nlohmann::json;
constexpr int kVersion = 1;

// Whether all of the text is on the disk. Otherwise errno says why not.
bool write_through(const std::string& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return false;
  bool good = true;
  while (good && !text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    good = written > 0 || (written < 0 && errno == EINTR);
  }
  good = good && fsync(descriptor) == 0;
  const int why = errno;
  close(descriptor);
  errno = why;
  return good;
}

}  // namespace

std::string boot_id(const std::string& processes) {
  std::ifstream in(processes + "/sys/kernel/random/boot_id");
  std::string out;
  std::getline(in, out);
  return out;
}

k8s::Result<std::optional<json>> BootMemory::read() const {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return std::optional<json>();
  std::ostringstream text;
  text << in.rdbuf();
  if (text.str().empty()) return std::optional<json>();
  const json all = json::parse(text.str(), nullptr, false);
  const json* value = member_at(all, member_);
  if (number_at(all, "v") != kVersion || member_at(all, "bootId") == nullptr || value == nullptr) {
    return k8s::fail(k8s::Reason::decode, fmt::format("{}: cannot be read", file_));
  }
  if (text_at(all, "bootId") != boot_id_) return std::optional<json>();
  return std::optional<json>(std::in_place, *value);
}

k8s::Result<void> BootMemory::write(const json& value) const {
  const std::string next = file_ + ".next";
  const json all{{"v", kVersion}, {"bootId", boot_id_}, {member_, value}};
  if (!write_through(next, all.dump() + "\n")) {
    return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: cannot be written: {}", next, std::strerror(errno)));
  }
  std::error_code ec;
  std::filesystem::rename(next, file_, ec);
  if (ec) return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: {}", file_, ec.message()));
  return {};
}

void BootMemory::forget() const {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace gso
