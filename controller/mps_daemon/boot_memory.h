// A value in a file that holds until the node boots: what a program that is started again must know, and what ends with
// the boot like the thing that it is about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "k8sclient/value/error.h"

namespace gso {

// Which boot of the node this is. `processes`: where its /proc is.
[[nodiscard]] std::string boot_id(const std::string& processes);

class BootMemory {
 public:
  // `member`: the name of the value in the file.
  BootMemory(std::string file, std::string boot_id, std::string member)
      : file_(std::move(file)), boot_id_(std::move(boot_id)), member_(std::move(member)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  // The value of this boot; nullopt: none. An empty file is none: a failure of the power leaves one, never this
  // program. Errors (`decode`): the file cannot be read.
  [[nodiscard]] k8s::Result<std::optional<nlohmann::json>> read() const;
  // Replaces the file as a whole, on the disk as well. Errors: `unavailable`.
  [[nodiscard]] k8s::Result<void> write(const nlohmann::json& value) const;
  void forget() const;

 private:
  std::string file_;
  std::string boot_id_;
  std::string member_;
};

}  // namespace gso
