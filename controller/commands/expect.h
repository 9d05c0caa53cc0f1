// `expect`: the labels, the allocatable and the MPS limits that a profile must produce on a node.
#pragma once

#include <iosfwd>
#include <string>

namespace gso {

struct Subcommand;

struct ExpectOptions {
  std::string config = {};   // Profile document, or a ConfigMap. "-" is stdin, here and below.
  std::string key = {};      // Of that ConfigMap; can be empty if it has one key.
  std::string devices = {};  // JSON list of GPUs. Exactly one of `devices` and `node` is given.
  std::string node = {};     // Node manifest.
  bool json = false;
};

// Exit status: 0 when the node will work, 1 when a component would exit, 2 for wrong usage and unreadable input.
[[nodiscard]] int run_expect(const ExpectOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

[[nodiscard]] Subcommand make_expect_command();

}  // namespace gso
