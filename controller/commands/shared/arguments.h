// Arguments that several commands declare alike.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/output_form.h"
#include "controller/config/options.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

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

// The value of a flag into `out`, which an empty text leaves as it is. Errors (`invalid`) name the flag and `example`.
[[nodiscard]] k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                                  k8s::Duration& out);
// The same from 1s to 1h.
[[nodiscard]] k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out);

}  // namespace gso
