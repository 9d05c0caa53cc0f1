// See arguments.h.
#include "controller/commands/shared/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gso {
namespace {

OutputForm form_of(const std::string& output) {
  if (output == "wide") return OutputForm::wide;
  if (output == "json") return OutputForm::json;
  return output == "yaml" ? OutputForm::yaml : OutputForm::text;
}

}  // namespace

const std::string& exit_status_of_findings() {
  static const std::string text =
      "Exit status: 0 fine, 1 a finding of severity error, 2 wrong usage or unreadable input.";
  return text;
}

bool is_connection(const OptionSpec& spec) {
  return spec.group == "Connection";
}

void add_output(CLI::App& app, OutputForm& form, const std::vector<std::string>& forms) {
  app.add_option_function<std::string>(
         "-o,--output", [&form](const std::string& output) { form = form_of(output); }, "Form of the output")
      ->check(CLI::IsMember(forms))
      ->default_str("text")
      ->type_name(fmt::format("{}", fmt::join(forms, "|")));
}

void add_output(CLI::App& app, bool& json) {
  const std::vector<std::string> forms{"text", "json"};
  app.add_option_function<std::string>(
         "-o,--output", [&json](const std::string& output) { json = output == "json"; }, "Form of the output")
      ->check(CLI::IsMember(forms))
      ->default_str("text")
      ->type_name("text|json");
}

void add_manifests(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("-f,--file", files, "Manifests to look at instead of the live cluster, - for stdin")
      ->type_name("FILE");
}

void add_connection(CLI::App& app, OptionFlags& settings) {
  settings.add_to(&app, is_connection);
  settings.add_request_timeout(&app);
}

}  // namespace gso
