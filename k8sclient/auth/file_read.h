// Reads small configuration files: kubeconfigs, certificates, tokens.
#pragma once

#include <cstddef>
#include <string>

#include "k8sclient/value/error.h"

namespace k8s {

// No kubeconfig, certificate bundle or token is larger.
inline constexpr std::size_t kLargestConfigFile = 4U * 1024 * 1024;

// The whole file. Errors (`not_found` when it does not exist, else `invalid`) name the path and the cause; a
// directory, and a file over kLargestConfigFile, are errors too. Blocks: for local files only.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

}  // namespace k8s
