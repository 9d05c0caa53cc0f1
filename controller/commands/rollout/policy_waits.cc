// What keeps policies with a change from a rollout: view.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <ranges>
#include <utility>

#include "controller/commands/rollout/unseen_changes.h"
#include "controller/commands/rollout/view.h"
#include "controller/commands/shared/print_line.h"
#include "reconcilers/explain/shown_state.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/status/status.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

// `status`: of a policy. Progressing names what holds all that is left; blocked[] also who is held beside others.
void read_waits(const std::string& policy, const OrderedJson& status, std::vector<PolicyWait>& out) {
  std::set<std::string> said;
  const bool some_wait = number_at(object_at(status, "nodes"), "pending") > 0;
  const auto conditions = status.find("conditions");
  if (conditions != status.end() && conditions->is_array()) {
    for (const OrderedJson& condition : *conditions) {
      if (!condition.is_object() || text_at(condition, "type") != "Progressing") continue;
      const bool stands = text_at(condition, "status") == "False" && text_at(condition, "reason") != kNothingToDo;
      if (!stands && !(some_wait && text_at(condition, "reason") == kRollingOut)) continue;
      out.push_back({policy, text_at(condition, "reason"), text_at(condition, "message"), {}, 0});
      said.insert(out.back().reason);
    }
  }
  const auto blocked = status.find("blocked");
  if (blocked == status.end() || !blocked->is_array()) return;
  for (const OrderedJson& entry : *blocked) {
    if (!entry.is_object() || said.contains(text_at(entry, "reason"))) continue;
    PolicyWait wait{policy, text_at(entry, "reason"), text_at(entry, "message"), {}, number_at(entry, "count")};
    const auto nodes = entry.find("nodes");
    for (const OrderedJson& node : nodes != entry.end() && nodes->is_array() ? *nodes : OrderedJson::array()) {
      if (node.is_string()) wait.nodes.push_back(node.get<std::string>());
    }
    out.push_back(std::move(wait));
  }
}

// That nodes are under way to start says less than when they do.
void note_settling(const std::pair<const std::string, std::string>& start, std::vector<PolicyWait>& waits) {
  std::erase_if(waits, [](const PolicyWait& wait) { return wait.reason == kRollingOut; });
  waits.insert(waits.begin(), {start.first, std::string(reason_of(Gate::settling)), start.second, {}, 0});
}

// A pause that no operator has written into the status yet takes the place of what the status says. Just after an edit
// it says nothing, although nodes wait.
void note_recorded_pause(const ReadingPass& pass, const SharingPolicy& policy, std::vector<PolicyWait>& waits) {
  const std::string_view paused = reason_of(Gate::paused);
  if (!policy.rollout.paused || std::ranges::find(waits, paused, &PolicyWait::reason) != waits.end()) return;
  auto all_wait = std::ranges::find_if(waits, [](const PolicyWait& wait) { return wait.nodes.empty(); });
  const auto nodes = pass.index().policies.find(policy.meta.name);
  if (all_wait == waits.end() && nodes != pass.index().policies.end() && nodes->second.of(Phase::pending) > 0)
    all_wait = waits.insert(waits.begin(), PolicyWait{policy.meta.name, {}, {}, {}, 0});
  if (all_wait == waits.end()) return;
  all_wait->reason = paused;
  all_wait->message = "spec.rollout.paused of the policy is set (recorded; an operator applies it)";
}

// An invalid text, as long as no status says it.
void note_invalid(const ReadingPass& pass, std::string_view policy, std::vector<PolicyWait>& waits) {
  if (std::ranges::find(waits, kConfigInvalid, &PolicyWait::reason) != waits.end()) return;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    const auto invalid = rollout.blocked.find(std::string(kConfigInvalid));
    if (key.policy != policy || invalid == rollout.blocked.end() || invalid->second.empty()) continue;
    const std::set<std::string>& nodes = invalid->second;
    PolicyWait wait{std::string(policy), std::string(kConfigInvalid), {}, {}, std::ssize(nodes)};
    wait.message = pass.index().find(*nodes.begin())->message;
    std::ranges::copy(nodes | std::views::take(kMostNames), std::back_inserter(wait.nodes));
    waits.push_back(std::move(wait));
  }
}

// Of policies that do not exist any more: their status is gone with them.
void add_gone_policies(const ReadingPass& pass, const std::optional<std::string>& policy,
                       std::vector<PolicyWait>& out) {
  for (const auto& [name, held] : pass.index().held_policies) {
    const auto nodes = pass.index().policies.find(name);
    const bool meant = !policy || name == *policy;
    const bool some_wait = nodes != pass.index().policies.end() && nodes->second.of(Phase::pending) > 0;
    std::string text = held.gone && meant && some_wait ? gone_policy_text(pass, name) : std::string();
    if (!text.empty()) out.push_back({name, std::string(kPolicyGone), std::move(text), {}, 0});
  }
}

}  // namespace

std::vector<PolicyWait> waiting_policies(ReadingPass& pass, const std::optional<std::string>& policy,
                                         const std::set<std::string>& except, bool has_operator) {
  std::map<std::string_view, const SharingPolicy*> sorted;
  for (const auto& [key, object] : pass.world().policies.all()) {
    const bool meant = !policy || key.name == *policy;
    if (meant && !except.contains(key.name)) sorted.emplace(object->meta.name, object.get());
  }
  const std::map<std::string, std::string> settling = pass.settling();
  std::vector<PolicyWait> out;
  for (const auto& [name, object] : sorted) {
    const OrderedJson status = OrderedJson::parse(object->status_json, nullptr, false);
    std::vector<PolicyWait> waits;
    if (status.is_object()) read_waits(std::string(name), status, waits);
    if (const auto start = settling.find(std::string(name)); start != settling.end()) note_settling(*start, waits);
    note_recorded_pause(pass, *object, waits);
    note_unseen_changes(pass, *object, has_operator, waits);
    note_invalid(pass, name, waits);
    for (PolicyWait& wait : waits) wait.paused = object->rollout.paused;
    std::ranges::move(waits, std::back_inserter(out));
  }
  add_gone_policies(pass, policy, out);
  return out;
}

bool PolicyWait::goes_on() const {
  return reason == kRollingOut || reason == kNotStarted || reason == reason_of(Gate::settling);
}

bool PolicyWait::is_stopped() const {
  return reason == kConfigInvalid || reason == kVerificationFailed || reason == reason_of(Gate::max_failures) ||
         reason == reason_of(Gate::aborted) || reason == reason_of(Gate::undone);
}

void print_waiting(const PolicyWait& wait, const WaitOutlook& outlook, bool has_operator, std::ostream& out) {
  const std::int64_t more = wait.count - std::ssize(wait.nodes);
  const std::string nodes = wait.nodes.empty() ? ""
                                               : fmt::format(" ({}{})", fmt::join(wait.nodes, ", "),
                                                             more > 0 ? fmt::format(" and {} more", more) : "");
  const std::string reason = wait.reason == kRollingOut ? "" : fmt::format("{}{}: ", wait.reason, nodes);
  const std::string_view stale = has_operator                               ? ""
                                 : wait.reason == kRollingOut               ? "last reported: "
                                 : wait.reason == reason_of(Gate::settling) ? "if an operator runs, "
                                                                            : "";
  const bool promises = wait.reason == kRollingOut || wait.reason == reason_of(Gate::outside_window);
  print_line(out, "policy {} waits: {}{}{}{}{}", wait.policy, reason, wait.news, stale, shown_message(wait.message),
             !has_operator && promises ? kNothingStarts : "");
  if (!outlook.runs.empty()) print_line(out, "  {}", outlook.runs);
  print_node_table({}, outlook.steps, out);
  for (const std::string& hold : outlook.held) print_line(out, "  held: {}", hold);
  for (const std::string& command : outlook.next) print_line(out, "  next: {}", command);
  if (wait.goes_on() && outlook.next.empty())
    print_line(out, "  to stop it: gpu-sharing-operator rollout pause policy/{}", wait.policy);
}

OrderedJson waiting_json(const PolicyWait& wait) {
  return {{"policy", wait.policy},
          {"reason", wait.reason},
          {"message", wait.news + wait.message},
          {"nodes", wait.nodes},
          {"count", wait.count}};
}

}  // namespace gso
