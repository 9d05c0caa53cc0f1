// The subcommands and their arguments as CLI11 sees them: what cli.cc parses and completion walks.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/cli/cli.h"
#include "controller/config/option_flags.h"

namespace gso {

// Every subcommand, what it was given, and the settings that it shares with others.
struct Commands {
  CLI::App app{"Keeps GPU sharing (MPS, time-slicing) in step with its configuration, node by node."};
  CLI::App* run = nullptr;
  CLI::App* lint = nullptr;
  CLI::App* expect = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* status = nullptr;
  CLI::App* check = nullptr;
  CLI::App* rollout = nullptr;
  CLI::App* cleanup = nullptr;
  CLI::App* explain = nullptr;
  CLI::App* audit = nullptr;
  CLI::App* diff = nullptr;
  CLI::App* support_bundle = nullptr;
  CLI::App* completion = nullptr;
  CLI::App* version_command = nullptr;
  OptionFlags run_flags;
  OptionFlags plan_flags;
  OptionFlags status_flags;
  OptionFlags check_flags;
  OptionFlags explain_flags;
  OptionFlags audit_flags;
  OptionFlags diff_flags;
  OptionFlags bundle_flags;
  std::map<RolloutOptions::Verb, std::unique_ptr<OptionFlags>> rollout_flags;  // The verb that is parsed has its own.
  std::map<RolloutOptions::Verb, CLI::App*> rollout_verbs;
  OptionFlags cleanup_flags;
  std::string cleanup_timeout;
  std::string check_timeout;
  std::string output = "text";
  std::string kai_sharing;
  std::string assume_observed_for;
};

// Fills both: `out` gets the values that need no second look. `program` is the name in the usage lines.
void describe(Commands& commands, Invocation& out, const std::string& program);

}  // namespace gso
