// The commands as CLI11 sees them: what cli.cc parses and completion walks.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/config/option_flags.h"

namespace gso {

// Every command, in the order of the help. The only list of commands there is.
[[nodiscard]] std::vector<Subcommand> all_commands();

// Commands with their arguments declared.
class CommandTree {
 public:
  // `program` is the name in the usage lines.
  CommandTree(std::vector<Subcommand> commands, const std::string& program);
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  struct Entry {
    Subcommand command;
    CLI::App* app = nullptr;
    OptionFlags settings;
  };
  [[nodiscard]] CLI::App& app() { return app_; }
  // The command, or the verb of a command, that app() has parsed; null before that.
  [[nodiscard]] const Entry* chosen() const;

 private:
  void add(CLI::App& parent, Subcommand command);

  CLI::App app_{"Keeps GPU sharing (MPS, time-slicing) in step with its configuration, node by node."};
  std::vector<std::unique_ptr<Entry>> entries_;  // Not by value: CLI11 keeps addresses of their settings.
};

}  // namespace gso
