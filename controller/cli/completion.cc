// A walk along the words through CLI11's tree, and three scripts.
#include "controller/cli/cli.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "controller/commands/shared/session.h"
#include "k8sclient/api/client.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/registry.h"

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
  if [ "$directive" = 6 ]; then compopt -o nospace 2>/dev/null; fi
  return 0
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
    if [[ $directive == 6 ]]; then
      _describe gpu-sharing-operator candidates -S ''
    else
      _describe gpu-sharing-operator candidates
    fi
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

// "text|json": the values that an option has; of a flag, those that may follow a "=".
std::vector<std::string> choices_of(const CLI::Option& option) {
  if (!takes_value(option)) return {"true", "false"};
  std::string type = option.get_type_name();  // With what its validators say: "text|json:{text,json}".
  type.resize(std::min(type.find(':'), type.size()));
  std::vector<std::string> out;
  if (type == "RECONCILER")
    for (const Reconciler& reconciler : reconcilers()) out.emplace_back(reconciler.name);
  return type.find('|') == std::string::npos || type == "COUNT|PERCENT" ? out : CLI::detail::split(type, '|');
}

class Completion {
 public:
  Completion(const CLI::App& root, std::ostream& out, const NameSource& names)
      : app_(&root), out_(out), names_(names) {}

  void run(const std::vector<std::string>& words) {
    const std::string typed = words.empty() ? "" : words.back();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) step(words[i]);
    // bash splits a word at "=": the sign and the value after it are words of their own.
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
      given_[pending_->get_name()] = word;
      pending_ = nullptr;
      return;
    }
    if (word.starts_with('-')) {
      const std::size_t equals = word.find('=');
      const CLI::Option* option = app_->get_option_no_throw(word.substr(0, equals));
      if (option == nullptr || !takes_value(*option)) return;
      if (equals == std::string::npos) pending_ = option;
      if (equals != std::string::npos) given_[option->get_name()] = word.substr(equals + 1);
      return;
    }
    for (const CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_name() != word) continue;
      app_ = sub;
      return;
    }
    positional_.push_back(word);
  }

  void candidate(const std::string& text, const std::string& typed, const std::string& what) {
    if (text.starts_with(typed)) out_ << text << "\t" << what.substr(0, what.find('\n')) << "\n";
  }

  void values(const CLI::Option* option, const std::string& typed, const std::string& before) {
    if (option == nullptr) return end(false);
    for (const std::string& choice : choices_of(*option))
      candidate(before + choice, before + typed, option->get_description());
    if (option->get_name() == "--namespace") offer({{resources::namespaces, "", before, ""}}, before + typed);
    end(option->get_type_name().starts_with("FILE"));
  }

  // What the word that is being typed may name.
  [[nodiscard]] std::vector<NameQuestion> named(const std::string& typed) const {
    const std::string command = app_->get_name();
    const bool verb = app_->get_parent() != nullptr && app_->get_parent()->get_name() == "rollout";
    if (verb && positional_.empty() && command != "diff") {
      if (command == "start") return {{resources::sharing_policies, "", "", ""}};
      return {{resources::sharing_rollouts, "", "", ""}, {resources::sharing_policies, "", "policy/", ""}};
    }
    if (command == "verify" && positional_.empty()) return {{resources::nodes, "", "", ""}};
    if (command != "explain" || positional_.size() > 1) return {};
    const bool first = positional_.empty();
    const std::string kind = first ? "" : positional_.front();
    if (kind == "node" || kind == "nodes" || kind == "no") return {{resources::nodes, "", "", ""}};
    const bool pod = kind == "pod" || kind == "pods" || kind == "po";
    if (!first && !pod) return {};
    if (const std::size_t slash = typed.find('/'); slash != std::string::npos) {
      const std::string ns = typed.substr(0, slash);
      return {{resources::pods, ns, ns + "/", ""}};
    }
    return {first ? NameQuestion{resources::nodes, "", "", ""}
                  : NameQuestion{resources::pods, given("--namespace"), "", ""},
            {resources::namespaces, "", "", "/"}};
  }

  // The value of that option among the words; empty: it is not there.
  [[nodiscard]] std::string given(const std::string& option) const {
    const auto at = given_.find(option);
    return at == given_.end() ? std::string() : at->second;
  }

  void offer(const std::vector<NameQuestion>& questions, const std::string& typed) {
    if (!names_ || questions.empty()) return;
    for (const std::string& name : names_(questions, {given("--kubeconfig"), given("--context")})) {
      if (!name.starts_with(typed)) continue;
      candidate(name, typed, "");
      unfinished_ = unfinished_ || name.ends_with('/');
    }
  }

  void options(const std::string& typed) {
    for (const CLI::Option* option : app_->get_options()) {
      for (const std::string& name : option->get_lnames()) candidate("--" + name, typed, option->get_description());
      if (typed == "-")
        for (const std::string& name : option->get_snames()) candidate("-" + name, typed, option->get_description());
    }
    end(false);
  }

  void subcommands(const std::string& typed) {
    bool files = false;
    for (const CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; }))
      candidate(sub->get_name(), typed, sub->get_description());
    for (const CLI::Option* option : app_->get_options()) {
      if (!option->get_positional()) continue;
      const std::string name = option->get_name(true);
      files = files || name == "FILE";
      if (name != "SHELL") continue;
      for (const char* shell : {"bash", "zsh", "fish"}) candidate(shell, typed, "");
    }
    offer(named(typed), typed);
    end(files);
  }

  void end(bool files) { out_ << (files ? ":0\n" : unfinished_ ? ":6\n" : ":4\n"); }

  const CLI::App* app_;
  const CLI::Option* pending_ = nullptr;  // Whose value comes next.
  std::ostream& out_;
  const NameSource& names_;
  std::map<std::string, std::string> given_;  // Options of the words so far, by "--name".
  std::vector<std::string> positional_;
  bool unfinished_ = false;  // A candidate ends with a slash and can be completed further.
};

}  // namespace

int print_completions(const std::vector<std::string>& words, std::ostream& out, const NameSource& names) {
  CommandTree tree(all_commands(), "gpu-sharing-operator");
  Completion(tree.app(), out, names).run(words);
  return 0;
}

int print_completion_script(const std::string& shell, std::ostream& out) {
  out << (shell == "zsh" ? kZsh : shell == "fish" ? kFish : kBash);
  return 0;
}

// --- Names of objects: one page of each kind, within a deadline.

namespace {

constexpr std::chrono::seconds kPatience(2);
constexpr int kMostCompletions = 500;

boost::asio::awaitable<int> ask(Session session, std::vector<NameQuestion> questions, std::vector<std::string>* names) {
  *names = co_await list_names(session.client, session.clock, questions, session.namespace_name);
  co_return 0;
}

}  // namespace

boost::asio::awaitable<std::vector<std::string>> list_names(k8s::Reader* client, k8s::Clock* clock,
                                                            std::vector<NameQuestion> questions, std::string ns) {
  std::vector<std::string> out;
  const k8s::MonoTime deadline = clock->monotonic() + kPatience;
  for (const NameQuestion& question : questions) {
    k8s::ItemFunction sink([&](std::optional<std::string_view> json) -> k8s::Result<void> {
      const auto object = nlohmann::json::parse(json.value_or("{}"), nullptr, false);
      const std::string name = text_at(object_at(object, "metadata"), "name");
      if (!name.empty()) out.push_back(question.before + name + question.after);
      return {};
    });
    k8s::ListOptions options;
    options.page_limit = kMostCompletions;
    options.call.deadline = deadline;
    if (question.gvr == resources::pods) options.ns = question.ns.empty() ? ns : question.ns;
    const std::string first_page;
    const k8s::Result<k8s::ListPage> page = co_await client->list_page(question.gvr, options, first_page, &sink);
    if (!page) continue;
  }
  co_return out;
}

std::vector<std::string> names_of_cluster(const std::vector<NameQuestion>& questions,
                                          const NameConnection& connection) {
  std::vector<std::string> out;
  Options options;
  options.kubeconfig = connection.kubeconfig;
  options.context = connection.context;
  options.request_timeout = kPatience;
  std::ostream nowhere(nullptr);
  (void)run_connected("completion", options, k8s::Interaction{}, nowhere,
                      [&](const Session& session) { return ask(session, questions, &out); });
  return out;
}

Subcommand make_completion_command() {
  const auto shell = std::make_shared<std::string>();
  const auto describe = [shell](CLI::App& app, OptionFlags& /*settings*/) {
    app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.footer(
        "bash: `source <(gpu-sharing-operator completion bash)`, zsh the same; fish: `gpu-sharing-operator completion "
        "fish | source`. For `kubectl gpu-sharing`, link the binary as kubectl_complete-gpu_sharing beside it.");
  };
  return {.name = "completion",
          .summary = "Print the script that completes commands, options and names in a shell",
          .describe = describe,
          .run = [shell](const Invocation& i) { return print_completion_script(*shell, i.out); }};
}

}  // namespace gso
