// See help_format.h.
#include "controller/cli/help_format.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace gso {
namespace {

constexpr std::size_t kColumns = 80;

// The words of a paragraph in lines of at most so many columns; a longer word has a line of its own.
std::string filled(std::string_view words, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  while (!words.empty()) {
    const std::size_t length = std::min(words.find(' '), words.size());
    if (used > 0) out += used + 1 + length > columns ? '\n' : ' ';
    used = used > 0 && used + 1 + length <= columns ? used + 1 + length : length;
    out += words.substr(0, length);
    words.remove_prefix(std::min(length + 1, words.size()));
  }
  return out;
}

// Sentences are filled, across the line ends that their author has made within them; lines that begin with spaces are a
// table of the author's.
std::string filled_lines(std::string_view text) {
  std::string out;
  std::string paragraph;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.starts_with(' ')) {
      out += std::string(line) + '\n';
      continue;
    }
    paragraph += paragraph.empty() ? "" : " ";
    paragraph += line;
    const bool ends = line.empty() || line.ends_with('.') || line.ends_with(':');
    const bool is_last = text.empty() || text.starts_with(' ') || text.starts_with('\n');
    if (!ends && !is_last) continue;
    out += filled(paragraph, kColumns) + '\n';
    paragraph.clear();
  }
  return out;
}

}  // namespace

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

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return filled(option->get_description(), kColumns - get_column_width());
}

std::string HelpFormat::make_subcommand(const CLI::App* app) const {
  std::ostringstream out;
  CLI::detail::format_help(out, app->get_display_name(true),
                           filled(app->get_description(), kColumns - get_column_width()), get_column_width());
  return out.str();
}

std::string HelpFormat::make_description(const CLI::App* app) const {
  return filled_lines(app->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  return filled_lines(app->get_footer());
}

}  // namespace gso
