// The operator's settings as options of a command line: flags, environment and a YAML file by the same names.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/options.h"

namespace gso {

// The settings of one subcommand as CLI11 options. Values stay text until every source is known.
class OptionFlags {
 public:
  // All settings, or only those that `wanted` chooses.
  void add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted);
  void add_config_to(CLI::App* app);

  // Flags and environment over the file over the defaults. Errors: `invalid`.
  [[nodiscard]] k8s::Result<Options> resolve() const;

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options_;
  CLI::Option* config_ = nullptr;
  std::string config_file_;
};

}  // namespace gso
