// Arguments that several commands declare alike.
#include "controller/commands/shared/command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"

namespace gso {

const std::string& exit_status_of_findings() {
  static const std::string text =
      "Exit status: 0 fine, 1 a finding of severity error, 2 wrong usage or unreadable input.";
  return text;
}

void add_output(CLI::App& app, const std::vector<std::string>& forms, std::function<void(const std::string&)> take) {
  app.add_option_function<std::string>("-o,--output", std::move(take), "Form of the output")
      ->check(CLI::IsMember(forms))
      ->default_str("text")
      ->type_name(fmt::format("{}", fmt::join(forms, "|")));
}

void add_output(CLI::App& app, bool& json) {
  add_output(app, {"text", "json"}, [&json](const std::string& output) { json = output == "json"; });
}

void add_output(CLI::App& app, OutputForm& form, const std::vector<std::string>& forms) {
  add_output(app, forms, [&form](const std::string& output) {
    form = output == "wide"   ? OutputForm::wide
           : output == "json" ? OutputForm::json
           : output == "yaml" ? OutputForm::yaml
                              : OutputForm::text;
  });
}

void add_manifests(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("-f,--file", files, "Manifests to look at instead of the live cluster, - for stdin")
      ->type_name("FILE");
}

void add_mps_user(CLI::App& app, OptionFlags& settings) {
  settings.add_to(&app, [](const OptionSpec& spec) { return spec.name == "mps-user"; });
}

void add_connection(CLI::App& app, OptionFlags& settings) {
  settings.add_to(&app, [](const OptionSpec& spec) { return spec.group == "Connection"; });
  settings.add_request_timeout(&app);
}

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

// "Blocked(OutsideWindow)" without its reason.
std::string word_of(const std::string& state) {
  return state.substr(0, state.find('('));
}

}  // namespace

bool NodeFilter::shows(std::string_view state, std::string_view policy, const k8s::StringMap& of_node) const {
  const std::string whole = in_lower_case(state);
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
    const std::string given = in_lower_case(state);
    if (std::ranges::find(known, word_of(given), in_lower_case) == known.end()) {
      return k8s::fail(k8s::Reason::invalid,
                       fmt::format("--state: '{}' is not a state; use {}", state, fmt::join(known, ", ")));
    }
    out.states.insert(given);
    if (given != in_lower_case(kWaiting)) continue;
    for (const Phase phase : kPhasesOfWaiting) out.states.insert(in_lower_case(to_string(phase)));
  }
  out.policies.insert(flags.policies.begin(), flags.policies.end());
  if (flags.selector.empty()) return out;
  k8s::Result<k8s::LabelSelector> labels = k8s::LabelSelector::parse(flags.selector);
  if (!labels) return k8s::fail(k8s::Reason::invalid, "--selector: " + labels.error().message);
  out.labels = *std::move(labels);
  return out;
}

}  // namespace gso
