// Arguments that several commands declare alike.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/output_form.h"
#include "controller/config/options.h"

namespace gso {

// The end of the help of commands that report findings.
[[nodiscard]] const std::string& exit_status_of_findings();

// Settings that say which cluster is meant.
[[nodiscard]] bool is_connection(const OptionSpec& spec);

// -o, --output: text or json; or one of `forms`, which begin with text.
void add_output(CLI::App& app, bool& json);
void add_output(CLI::App& app, OutputForm& form, const std::vector<std::string>& forms);

// -f, --file: manifests instead of the live cluster.
void add_manifests(CLI::App& app, std::vector<std::string>& files);

// Settings that say which cluster is meant, and --request-timeout. For people's commands.
void add_connection(CLI::App& app, OptionFlags& settings);

}  // namespace gso
