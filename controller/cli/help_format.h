// Help as people read it: what a value is, and its default, without the parser's own words, in lines of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gso {

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* app) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace gso
