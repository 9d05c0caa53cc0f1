// A walk along the words through CLI11's tree, and three scripts.
#include "controller/command_completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "controller/cli_commands.h"

namespace gso {
namespace {

constexpr std::string_view kBash = R"(_gpu_sharing_operator() {
  local line directive=0 tab=$'\t'
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) directive=${line#:} ;;
      *) COMPREPLY+=("${line%%"$tab"*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ "$directive" = 0 ] && [ ${#COMPREPLY[@]} -eq 0 ]; then compopt -o default 2>/dev/null; fi
}
complete -F _gpu_sharing_operator gpu-sharing-operator
)";

constexpr std::string_view kZsh = R"(#compdef gpu-sharing-operator
_gpu_sharing_operator() {
  local -a candidates
  local line directive=0 tab=$'\t'
  while IFS= read -r line; do
    case $line in
      :*) directive=${line#:} ;;
      *) candidates+=("${${line%%$tab*}//:/\\:}:${line#*$tab}") ;;
    esac
  done < <($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#candidates} )); then
    _describe gpu-sharing-operator candidates
  elif [[ $directive == 0 ]]; then
    _files
  fi
}
compdef _gpu_sharing_operator gpu-sharing-operator
)";

constexpr std::string_view kFish = R"(function __gpu_sharing_operator_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    string match -q ':*' -- $line; or echo $line
  end
end
complete -c gpu-sharing-operator -a '(__gpu_sharing_operator_complete)'
)";

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// "text|json": the values that an option has.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> out;
  std::string type = option.get_type_name();  // With what its validators say: "text|json:{text,json}".
  type.resize(std::min(type.find(':'), type.size()));
  if (type.find('|') == std::string::npos || type == "COUNT|PERCENT") return out;
  for (std::size_t from = 0; from <= type.size();) {
    const std::size_t to = std::min(type.find('|', from), type.size());
    out.push_back(type.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

class Completion {
 public:
  Completion(const CLI::App& root, std::ostream& out) : app_(&root), out_(out) {}

  void run(const std::vector<std::string>& words) {
    const std::string typed = words.empty() ? "" : words.back();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) step(words[i]);
    // bash makes words of their own of "=", and of what stands behind it.
    if (const std::size_t equals = typed.find('='); typed.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* option = app_->get_option_no_throw(typed.substr(0, equals));
      values(option, typed.substr(equals + 1), typed.substr(0, equals + 1));
    } else if (pending_ != nullptr) {
      values(pending_, typed == "=" ? "" : typed, "");
    } else if (typed.starts_with('-')) {
      options(typed);
    } else {
      subcommands(typed);
    }
  }

 private:
  // A word that is complete.
  void step(const std::string& word) {
    if (word == "=") return;
    if (pending_ != nullptr) {
      pending_ = nullptr;
      return;
    }
    if (word.starts_with('-')) {
      const CLI::Option* option = app_->get_option_no_throw(word);
      if (option != nullptr && takes_value(*option)) pending_ = option;
      return;
    }
    for (const CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_name() == word) app_ = sub;
    }
  }

  void candidate(const std::string& text, const std::string& typed, const std::string& what) {
    if (text.starts_with(typed)) out_ << text << "\t" << what.substr(0, what.find('\n')) << "\n";
  }

  void values(const CLI::Option* option, const std::string& typed, const std::string& before) {
    const std::vector<std::string> choices = option == nullptr ? std::vector<std::string>() : choices_of(*option);
    for (const std::string& choice : choices) candidate(before + choice, before + typed, option->get_description());
    const bool file = option != nullptr && option->get_type_name().starts_with("FILE");
    end(file);
  }

  void options(const std::string& typed) {
    for (const CLI::Option* option : app_->get_options()) {
      for (const std::string& name : option->get_lnames()) candidate("--" + name, typed, option->get_description());
      if (typed == "-") {
        for (const std::string& name : option->get_snames()) candidate("-" + name, typed, option->get_description());
      }
    }
    end(false);
  }

  void subcommands(const std::string& typed) {
    bool files = false;
    for (const CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; })) {
      candidate(sub->get_name(), typed, sub->get_description());
    }
    for (const CLI::Option* option : app_->get_options()) {
      if (!option->get_positional()) continue;
      const std::string name = option->get_name(true);
      files = files || name == "FILE";
      if (name != "SHELL") continue;
      for (const char* shell : {"bash", "zsh", "fish"}) candidate(shell, typed, "");
    }
    end(files);
  }

  void end(bool files) { out_ << (files ? ":0\n" : ":4\n"); }

  const CLI::App* app_;
  const CLI::Option* pending_ = nullptr;  // Whose value comes next.
  std::ostream& out_;
};

}  // namespace

int print_completions(const std::vector<std::string>& words, std::ostream& out) {
  Invocation invocation;
  const auto commands = std::make_unique<Commands>();
  describe(*commands, invocation, "gpu-sharing-operator");
  Completion(commands->app, out).run(words);
  return 0;
}

int print_completion_script(const std::string& shell, std::ostream& out) {
  out << (shell == "zsh" ? kZsh : shell == "fish" ? kFish : kBash);
  return 0;
}

}  // namespace gso
