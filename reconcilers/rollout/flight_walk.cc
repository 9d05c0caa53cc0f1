// All nodes in flight, at the cost of those that need something: the others are left alone until their next date.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/in_flight.h"

namespace gso {

namespace {

// How long a node that only waits is left alone: whatever else it might depend on is looked at again by then.
constexpr Duration kQuiet = std::chrono::seconds(10);

class FlightWalk {
 public:
  explicit FlightWalk(Pass& pass) : pass_(pass) {}

  void run() {
    for (const auto* names : {&pass_.index.in_flight, &pass_.index.failed}) {
      // Who comes first changes, so that nodes whose writes fail again and again cannot use up every pass.
      const auto size = static_cast<std::int64_t>(names->size());
      const std::int64_t first = size > kInOrder ? pass_.s.now.time_since_epoch().count() % size : 0;
      const auto middle = std::next(names->begin(), first);
      std::for_each(middle, names->end(), [this](const std::string& name) { visit(name); });
      std::for_each(names->begin(), middle, [this](const std::string& name) { visit(name); });
    }
  }

 private:
  static constexpr std::int64_t kInOrder = Pass::kMostActions / 4;  // All of these fit into a pass, whatever they need.

  void visit(const std::string& name) {
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || !a->flight || !pass_.plannable(*a)) return;
    const auto quiet = pass_.index.quiet_flights.find(name);
    if (quiet != pass_.index.quiet_flights.end() && pass_.s.now < quiet->second.until) {
      const auto& seen = quiet->second.conditions;
      pass_.plan.conditions.insert(pass_.plan.conditions.end(), seen.begin(), seen.end());
      if (quiet->second.due) pass_.look_again_in(*quiet->second.due - pass_.s.now);
    } else if (pass_.takes_more()) {
      look(name, *node, *a);
    } else {
      keep_conditions(name, *a->flight, quiet == pass_.index.quiet_flights.end() ? nullptr : &quiet->second);
    }
  }

  void look(const std::string& name, const Node& node, const NodeAssessment& a) {
    Plan& plan = pass_.plan;
    const auto sizes = [&plan] { return std::pair(plan.actions.size(), plan.findings.size()); };
    const auto before = sizes();
    const std::size_t seen = plan.conditions.size();
    const std::optional<Duration> others = std::exchange(plan.requeue_after, std::nullopt);
    plan_flight(pass_, node, a);
    const std::optional<Duration> wait = plan.requeue_after;
    if (others) pass_.look_again_in(*others);  // Both, the earlier one.
    QuietFlight quiet;
    quiet.conditions.assign(plan.conditions.begin() + static_cast<std::ptrdiff_t>(seen), plan.conditions.end());
    const auto in = [this](Duration d) { return std::chrono::ceil<WallTime::duration>(pass_.s.now + d); };
    // A listing of its consumers, which others may have asked for already, changes nothing of the node.
    const bool listens = plan.consumers_wanted.contains(name);
    if (sizes() == before && !listens) quiet.until = in(std::min(wait.value_or(kQuiet), kQuiet));
    if (wait) quiet.due = in(*wait);
    pass_.index.quiet_flights.insert_or_assign(name, std::move(quiet));
  }

  // Of a node that this pass has no time for.
  void keep_conditions(const std::string& name, const Flight& flight, const QuietFlight* seen) {
    if (seen != nullptr) {
      pass_.plan.conditions.insert(pass_.plan.conditions.end(), seen->conditions.begin(), seen->conditions.end());
      return;
    }
    const std::string verifying = verifying_condition(name, flight.target, print_replace(flight.replace));
    pass_.keep(draining_condition(name, flight.target));
    pass_.keep(reloading_condition(name, flight));
    pass_.keep(unchanged_condition(name, flight.target));
    pass_.keep("shown/" + verifying);
    pass_.keep(verifying);
  }

  Pass& pass_;
};

}  // namespace

void plan_nodes_in_flight(Pass& pass) {
  FlightWalk(pass).run();
}

}  // namespace gso
