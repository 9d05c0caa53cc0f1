// What leaves a cluster: a compressed archive in memory, tar (POSIX ustar) and gzip, readable everywhere; and objects
// and texts without their secrets.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

class TarArchive {
 public:
  // `modified`: of every file.
  explicit TarArchive(k8s::WallTime modified) : modified_(modified) {}
  // Mode 0600. Names of more than 100 bytes are cut.
  void add(std::string name, std::string_view content);
  // With the two empty blocks that end it; nothing may be added afterwards.
  [[nodiscard]] std::string finish() &&;

 private:
  k8s::WallTime modified_;
  std::string bytes_;
};

// `bytes` compressed, as one member of a .gz file without a name and a time. Errors: `decode`, if zlib has no memory,
// or if they are more than 4 GiB.
[[nodiscard]] k8s::Result<std::string> gzipped(std::string_view bytes);

// --- Removes secrets from objects as JSON, and from lines of logs. In doubt a value is removed.

inline constexpr std::string_view kRedacted = "(redacted)";

// Of an object: metadata.managedFields and the annotation with the last applied configuration go; values of fields,
// environment variables, annotations and arguments that are named like a secret (token, password, credential, key, …)
// become kRedacted, as does the data of Secrets; the same for texts as below, anywhere.
void redact(nlohmann::ordered_json& object);

// A text without bearer tokens, JSON Web Tokens, PEM blocks, passwords in URLs, and values behind a name like that of a
// secret (NAME=VALUE, "NAME": "VALUE", --NAME VALUE).
[[nodiscard]] std::string redacted(std::string_view text);

// Named like a secret, whatever the case.
[[nodiscard]] bool is_secret_name(std::string_view name);

}  // namespace gso
