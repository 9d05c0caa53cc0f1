#include "controller/commands/shared/node_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "reconcilers/node/phase.h"

namespace gso {

namespace {

// Beside the phases: what tables show of a node that is not simply UpToDate, or that no plugin serves.
constexpr std::string_view kOtherStates[] = {"Drift",    "PreexistingDrift", "Unproven",
                                             "NoPlugin", "PartitionedByNos", "Unknown"};

// What a SharingRollout says of a node that waits for something else than the operator: it can be in any of these.
constexpr std::string_view kWaiting = "Waiting";
constexpr Phase kPhasesOfWaiting[] = {Phase::pending, Phase::draining, Phase::restarting, Phase::verifying};

std::vector<std::string> all_states() {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kPhases; ++i) out.emplace_back(to_string(static_cast<Phase>(i)));
  out.insert(out.end(), std::begin(kOtherStates), std::end(kOtherStates));
  out.emplace_back(kWaiting);
  return out;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "Blocked(OutsideWindow)" without its reason.
std::string word_of(const std::string& state) {
  return state.substr(0, state.find('('));
}

}  // namespace

bool NodeFilter::shows(std::string_view state, std::string_view policy, const k8s::StringMap& of_node) const {
  const std::string whole = lower(std::string(state));
  const bool is_meant = states.empty() || states.contains(word_of(whole)) || states.contains(whole);
  return is_meant && (policies.empty() || policies.contains(std::string(policy))) && labels.matches(of_node);
}

void add_node_filter(CLI::App& app, NodeFilterFlags& flags) {
  app.add_option("--state", flags.states, "Only nodes in one of these states, for example Pending,Failed")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("STATE");
  app.add_option("--policy", flags.policies, "Only nodes of one of these SharingPolicies")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("-l,--selector", flags.selector, "Only nodes with these labels, for example pool=a100")
      ->type_name("LABELS");
}

k8s::Result<NodeFilter> node_filter_of(const NodeFilterFlags& flags) {
  NodeFilter out;
  const std::vector<std::string> known = all_states();
  for (const std::string& state : flags.states) {
    const std::string given = lower(state);
    if (std::ranges::find(known, word_of(given), lower) == known.end()) {
      return k8s::fail(k8s::Reason::invalid,
                       fmt::format("--state: '{}' is not a state; use {}", state, fmt::join(known, ", ")));
    }
    out.states.insert(given);
    if (given != lower(std::string(kWaiting))) continue;
    for (const Phase phase : kPhasesOfWaiting) out.states.insert(lower(std::string(to_string(phase))));
  }
  out.policies.insert(flags.policies.begin(), flags.policies.end());
  if (flags.selector.empty()) return out;
  k8s::Result<k8s::LabelSelector> labels = k8s::LabelSelector::parse(flags.selector);
  if (!labels) return k8s::fail(k8s::Reason::invalid, "--selector: " + labels.error().message);
  out.labels = *std::move(labels);
  return out;
}

}  // namespace gso
