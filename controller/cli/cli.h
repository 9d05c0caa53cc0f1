// The command line. The same binary is `kubectl gpu-sharing` where it is installed as kubectl-gpu_sharing.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/config/option_flags.h"
#include "controller/config/options.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"

namespace gso {

// What the arguments ask for.
struct ParsedArguments {
  Options options;                            // The settings of the command.
  std::function<int(const Invocation&)> run;  // The command.
  // Set when there is nothing to do but to end: help was printed (0), or the usage is wrong (2).
  std::optional<int> exit_code;
};

// Parses flags, environment and the --config file. Prints help to `out` and complaints to `err`.
[[nodiscard]] ParsedArguments parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                                              std::ostream& err, const std::string& program = "gpu-sharing-operator");

// The whole program, under the name that it was called by (argv[0]): `kubectl-gpu_sharing` is kubectl's plugin, and
// `kubectl_complete-gpu_sharing` what kubectl asks for completions. Exit status: 0 fine, 1 a finding of severity error
// (or a run that ended by itself), 2 usage or unreadable input.
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
                          std::ostream& err, const std::string& called = "gpu-sharing-operator");

// --- The commands as CLI11 sees them: what cli.cc parses and completion walks.

// Every command, in the order of the help. The only list of commands there is.
[[nodiscard]] std::vector<Subcommand> all_commands();

// Commands with their arguments declared.
class CommandTree {
 public:
  // `program` is the name in the usage lines.
  CommandTree(std::vector<Subcommand> commands, const std::string& program);
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  struct Entry {
    Subcommand command;
    CLI::App* app = nullptr;
    OptionFlags settings;
  };
  [[nodiscard]] CLI::App& app() { return app_; }
  // The command, or the verb of a command, that app() has parsed; null before that.
  [[nodiscard]] const Entry* chosen() const;

 private:
  void add(CLI::App& parent, Subcommand command);

  CLI::App app_{"Keeps GPU sharing (MPS, time-slicing) in step with its configuration, node by node."};
  std::vector<std::unique_ptr<Entry>> entries_;  // Not by value: CLI11 keeps addresses of their settings.
};

// --- Shell completion. The scripts only ask the binary (`__complete WORD…`), which knows its subcommands and options,
// and which asks the cluster for names of objects. In completion.cc.

inline constexpr std::string_view kCompleteWord = "__complete";

struct NameQuestion {
  k8s::Gvr gvr;
  std::string ns;      // Of pods; empty: that of the kubeconfig's context.
  std::string before;  // Prefix of each name: "policy/", "team-a/".
  std::string after;   // Suffix of each name: "/".
};

// How the cluster is reached, as the words so far say.
struct NameConnection {
  std::string kubeconfig;
  std::string context;
};
using NameSource = std::function<std::vector<std::string>(const std::vector<NameQuestion>& questions,
                                                          const NameConnection& connection)>;

// Asks the cluster, for two seconds in all, at most 500 names for each question. Errors are not shown while typing:
// names that cannot be read are not offered.
[[nodiscard]] std::vector<std::string> names_of_cluster(const std::vector<NameQuestion>& questions,
                                                        const NameConnection& connection);

// The same on a given client. `ns`: of a pod's question without one.
boost::asio::awaitable<std::vector<std::string>> list_names(k8s::Reader* client, k8s::Clock* clock,
                                                            std::vector<NameQuestion> questions, std::string ns);

// `words`: the words after the program's name; the last one is being typed (maybe empty). Prints a
// candidate on each line, with a tab and what it is for, and at last ":0" where files may stand too, ":4" where not,
// and 2 more where no space follows: the form that kubectl wants of its plugins. `names` completes object names, where
// the word can be one; null: no names are offered. Always 0.
int print_completions(const std::vector<std::string>& words, std::ostream& out, const NameSource& names = nullptr);

// The script of "bash", "zsh" or "fish". Always 0.
int print_completion_script(const std::string& shell, std::ostream& out);

[[nodiscard]] Subcommand make_completion_command();

}  // namespace gso
