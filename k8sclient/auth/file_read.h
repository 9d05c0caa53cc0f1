// Files of credentials, and whether a person can be asked.
#pragma once

#include <cstddef>
#include <string>

#include "k8sclient/value/error.h"

namespace k8s {

// --- Reads small configuration files: kubeconfigs, certificates, tokens.

// No kubeconfig, certificate bundle or token is larger.
inline constexpr std::size_t kLargestConfigFile = 4U * 1024 * 1024;

// The whole file. Errors (`not_found` when it does not exist, else `invalid`) name the path and the cause; a
// directory, and a file over kLargestConfigFile, are errors too. Blocks: for local files only.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// --- The terminal of the person who runs a command, for credential plugins that ask something or print a device code.
// A program without a person (the operator, shell completion) passes a default Interaction: plugins cannot ask then.

struct Interaction {
  int input = -1;     // Descriptor of a terminal that plugins read answers from; -1: they read nothing.
  int messages = -1;  // Descriptor of a terminal that gets what plugins write to stderr; -1: it is captured.
  [[nodiscard]] bool possible() const { return input >= 0 || messages >= 0; }
};

// Standard input and standard error of this process, each if it is a terminal.
[[nodiscard]] Interaction terminal_of_process();

}  // namespace k8s
