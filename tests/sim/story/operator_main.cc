// gso-operator: the operator's `run` without its other commands, so that the demo is built soon.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "controller/commands/commands.h"
#include "controller/config/option_flags.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("The operator of the demo.");
  CLI::App* const run = app.add_subcommand("run", "Run the controller");
  app.require_subcommand(1);
  gso::OptionFlags flags;
  flags.add_to(run, [](const gso::OptionSpec&) { return true; });
  flags.add_config_to(run);
  CLI11_PARSE(app, argc, argv);
  auto options = flags.resolve();
  if (options) {
    const auto fine = gso::validate(*options);
    if (fine) return gso::run_controller(*std::move(options), std::cerr);
    options = std::unexpected(fine.error());
  }
  std::cerr << "gso-operator: " << options.error().message << "\n";
  return 2;
}
