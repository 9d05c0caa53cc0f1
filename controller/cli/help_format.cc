// See help_format.h.
#include "controller/cli/help_format.h"

#include <algorithm>

#include <fmt/format.h>

namespace gso {

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string out;
  std::string type = option->get_type_name();  // With what its validators say: "text|json:{text,json}".
  type.resize(std::min(type.find(":{"), type.size()));
  const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  if (option->get_type_size() != 0) {
    // A positional is named after what it is.
    if (!option->get_positional() && !type.empty()) out += " " + type;
    if (several && !option->get_positional()) out += " ...";
    if (!option->get_default_str().empty()) out += fmt::format(" (default {})", option->get_default_str());
  }
  if (!option->get_envname().empty()) out += fmt::format(" [{}]", option->get_envname());
  return out;
}

std::string HelpFormat::make_option_usage(const CLI::Option* option) const {
  const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  const std::string name = make_option_name(option, true) + (several ? "..." : "");
  return option->get_required() ? name : "[" + name + "]";
}

}  // namespace gso
