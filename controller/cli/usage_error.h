// What is wrong with the arguments of a command, in words for people: those of CLI11 name its own rules.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace gso {

// `command`: "gpu-sharing-operator explain"; `app`: its own, after it has failed to parse.
[[nodiscard]] std::string usage_error(const CLI::ParseError& error, const std::string& command, const CLI::App& app);

}  // namespace gso
