// Shell completion. The scripts only ask the binary (`__complete WORD…`), which knows its subcommands and options, and
// which asks the cluster for names of objects.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"

namespace gso {

struct Subcommand;

inline constexpr std::string_view kCompleteWord = "__complete";

struct NameQuestion {
  enum class Kind { node, name_space, pod, policy, rollout } kind = Kind::node;
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
