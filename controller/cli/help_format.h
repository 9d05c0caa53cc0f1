// Help as people read it: what a value is, and its default, without the parser's own words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gso {

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
};

}  // namespace gso
