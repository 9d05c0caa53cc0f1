// See usage_error.h.
#include "controller/cli/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace gso {
namespace {

// "--output", or "FILE".
std::string name_of(const CLI::Option& option) {
  return option.get_name(option.get_positional());
}

// With what its value is: "--timeout DURATION".
std::string name_with_value(const CLI::Option& option) {
  const std::string type = option.get_type_name().substr(0, option.get_type_name().find(":{"));
  return option.get_positional() || type.empty() ? name_of(option) : name_of(option) + " " + type;
}

std::string quoted(const std::vector<std::string>& words) {
  return fmt::format("'{}'", fmt::join(words, "', '"));
}

std::string missing(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0) names.push_back(name_with_value(*option));
  }
  return names.empty() ? std::string() : fmt::format("missing: {}", fmt::join(names, ", "));
}

// The part of CLI11's message between two others.
std::string between(std::string_view message, std::string_view begin, std::string_view end) {
  const std::size_t from = message.find(begin);
  if (from == std::string_view::npos) return {};
  message.remove_prefix(from + begin.size());
  return std::string(message.substr(0, message.find(end)));
}

std::string mismatch(const std::string& message, const CLI::App& app) {
  const CLI::Option* option = app.get_option_no_throw(message.substr(0, message.find(": ")));
  if (option == nullptr) return message;
  const auto most = static_cast<std::size_t>(option->get_items_expected_max());
  if (option->results().size() > most)
    return fmt::format("too many arguments: {} takes at most {}, not {}", name_of(*option), most,
                       option->results().size());
  return fmt::format("{} needs a value: {}", name_of(*option), name_with_value(*option));
}

// "--output: foo not in {text,json}"
std::string no_such_value(const std::string& message) {
  constexpr std::string_view kNotIn = " not in {";
  const std::size_t name = message.find(": ");
  const std::size_t end = message.rfind(kNotIn);
  if (name == std::string::npos || end == std::string::npos || end < name + 2) return message;
  std::string values = between(std::string_view(message).substr(end), "{", "}");
  for (std::size_t at = values.find(','); at != std::string::npos; at = values.find(',', at + 2))
    values.replace(at, 1, ", ");
  return fmt::format("{}: '{}' is not one of {}", message.substr(0, name), message.substr(name + 2, end - name - 2),
                     values);
}

std::string in_words(const CLI::ParseError& error, const CLI::App& app) {
  const std::string message = error.what();
  const std::string& kind = error.get_name();
  if (kind == "RequiredError") {
    std::string names = missing(app);
    return names.empty() ? message : names;
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {  // Its name is the command's.
    const std::vector<std::string> left = app.remaining();
    return fmt::format("unexpected argument{} {}", left.size() == 1 ? "" : "s", quoted(left));
  }
  if (kind == "ArgumentMismatch") return mismatch(message, app);
  if (kind == "ConversionError") {
    const std::string name = between(message, ": ", " = ");
    return name.empty() ? message
                        : fmt::format("{}: {} is not a value for it", name, quoted({between(message, " = ", "\n")}));
  }
  if (kind == "ValidationError") return no_such_value(message);
  return message;
}

}  // namespace

std::string usage_error(const CLI::ParseError& error, const std::string& command, const CLI::App& app) {
  return fmt::format("{0}: {1}. Run: {0} --help", command, in_words(error, app));
}

}  // namespace gso
