// Shell completion. The scripts only ask the binary (`__complete WORD…`), which knows its subcommands and options.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/completion_names.h"

namespace gso {

struct Command;

inline constexpr std::string_view kCompleteWord = "__complete";

// `words`: the words after the program's name; the last one is being typed (maybe empty). Prints a
// candidate on each line, with a tab and what it is for, and at last ":0" where files may stand too, ":4" where not,
// and 2 more where no space follows: the form that kubectl wants of its plugins. `names` completes object names, where
// the word can be one; null: no names are offered. Always 0.
int print_completions(const std::vector<std::string>& words, std::ostream& out, const NameSource& names = nullptr);

// The script of "bash", "zsh" or "fish". Always 0.
int print_completion_script(const std::string& shell, std::ostream& out);

[[nodiscard]] Command make_completion_command();

}  // namespace gso
