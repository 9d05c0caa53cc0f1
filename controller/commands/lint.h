// `lint FILE…`: what the plugin, GFD and the MPS daemon would say about profiles, and what they would silently ignore.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace gso {

struct Subcommand;

struct LintOptions {
  std::vector<std::string> files = {};  // "-" is stdin; a folder stands for the files below it (expand_folders()).
  bool json = false;
  bool sarif = false;
  bool codes = false;  // Only list every code, with what it means and what to do. No file is read.
  std::optional<bool> kai_gpu_sharing = std::nullopt;  // Whether KAI's GPU sharing is on, for Pods.
};

// Exit status: 0 without errors, 1 with a diagnostic of severity error, 2 when a file cannot be read.
[[nodiscard]] int run_lint(const LintOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

[[nodiscard]] Subcommand make_lint_command();

}  // namespace gso
