// Reads what a command is given: a file by name, or stdin as "-".
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"

namespace gso {

inline constexpr std::size_t kMaxInputBytes = std::size_t{512} << 20;

// The whole text. Errors (reason `invalid`) name the file and say why it cannot be read, too large included.
[[nodiscard]] k8s::Result<std::string> read_input(const std::string& name, std::istream& stdin_stream);

// Nothing but blanks, comments and "---".
[[nodiscard]] bool is_blank(std::string_view text);

// As read_input(), but an empty stdin is an error: the program that should have written it has failed.
[[nodiscard]] k8s::Result<std::string> read_written_input(const std::string& name, std::istream& stdin_stream);

// Folders opened up, in the order of names, everything else as given: the .yaml, .yml and .json files below them (in
// any case), and files without an extension that read like a profile or a manifest, as the keys of a mounted ConfigMap
// are. Folders whose names begin with ".." are left out: the kubelet keeps a second copy of such a ConfigMap there.
// `problems`: gets a line for each folder that cannot be read or has no such file.
[[nodiscard]] std::vector<std::string> expand_folders(const std::vector<std::string>& given,
                                                      std::vector<std::string>& problems);

}  // namespace gso
