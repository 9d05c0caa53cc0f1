// The operator's settings as options of a command line: flags, environment and a YAML file by the same names.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/options.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// The settings of one subcommand as CLI11 options. Values stay text until every source is known.
class OptionFlags {
 public:
  // All settings, or only those that `wanted` chooses.
  void add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted);
  void add_config_to(CLI::App* app);
  // --request-timeout: of people's commands only. The operator has deadlines of its own, so it is no setting.
  void add_request_timeout(CLI::App* app);

  // Flags and environment over the file over the defaults. Errors: `invalid`.
  [[nodiscard]] k8s::Result<Options> resolve() const;

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options_;
  CLI::Option* config_ = nullptr;
  std::string config_file_;
  std::string request_timeout_;
};

// The value of a flag into `out`, which an empty text leaves as it is. Errors (`invalid`) name the flag and `example`.
[[nodiscard]] k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                                  k8s::Duration& out);
// The same from 1s to 1h.
[[nodiscard]] k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out);

}  // namespace gso
