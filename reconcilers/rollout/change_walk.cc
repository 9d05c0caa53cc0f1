#include "reconcilers/rollout/change_walk.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "reconcilers/rollout/change_steps.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/evictions.h"
#include "reconcilers/rollout/recorded_timers.h"

namespace gso {

namespace {

// How long a node that only waits is skipped; everything it could depend on is checked again after that.
constexpr Duration kQuiet = std::chrono::seconds(10);

class ChangeWalk {
 public:
  explicit ChangeWalk(Pass& pass) : pass_(pass) {}

  void run() {
    pass_.walks(pass_.index.nodes_in(Bucket::changing).size() + pass_.index.nodes_in(Bucket::failed).size());
    for (const auto* names : {&pass_.index.nodes_in(Bucket::changing), &pass_.index.nodes_in(Bucket::failed)}) {
      // The first node differs from pass to pass, so that nodes whose writes fail repeatedly cannot use up every pass.
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
    if (node == nullptr || a == nullptr || !a->change || !pass_.plannable(*a)) return;
    const auto quiet = pass_.index.quiet_changes.find(name);
    if (quiet != pass_.index.quiet_changes.end() && pass_.s.mono < quiet->second.until) {
      const auto& seen = quiet->second.timers;
      pass_.plan.timers.insert(pass_.plan.timers.end(), seen.begin(), seen.end());
      if (quiet->second.due) pass_.look_again_in(*quiet->second.due - pass_.s.mono);
    } else if (!steps_.is_undecided(name, *a) && pass_.takes_more()) {
      look(name, *node, *a);
    } else {
      keep(*node, *a, quiet == pass_.index.quiet_changes.end() ? nullptr : &quiet->second);
    }
  }

  void look(const std::string& name, const Node& node, const NodeAssessment& a) {
    Plan& plan = pass_.plan;
    const auto sizes = [&plan] { return std::pair(plan.actions.size(), plan.findings.size()); };
    const auto before = sizes();
    const std::size_t seen = plan.timers.size();
    const std::optional<Duration> others = std::exchange(plan.requeue_after, std::nullopt);
    go_on(name, node, a);
    const std::optional<Duration> wait = plan.requeue_after;
    if (others) pass_.look_again_in(*others);  // The earlier of the two.
    QuietChange quiet;
    quiet.timers.assign(plan.timers.begin() + static_cast<std::ptrdiff_t>(seen), plan.timers.end());
    // A timer is due at a millisecond of the wall clock.
    const auto in = [this](Duration d) { return pass_.s.mono + std::chrono::ceil<WallTime::duration>(d); };
    // A requested listing of the node's consumers is not visible in the plan if other code has requested it already, so
    // such a node is checked in every pass.
    const bool listens = plan.consumers_wanted.contains(name);
    if (sizes() == before && !listens) quiet.until = in(std::min(wait.value_or(kQuiet), kQuiet));
    if (wait) quiet.due = in(*wait);
    pass_.index.quiet_changes.insert_or_assign(name, std::move(quiet));
  }

  void go_on(const std::string& name, const Node& node, const NodeAssessment& a) {
    Step next = steps_.of(node, a);
    const bool evicts = next.evicts;
    const bool done = next.done;
    pass_.take(std::move(next.plan), name);
    if (evicts) evict_consumers(pass_, name, a, use_of(pass_.s, name));
    if (done) remove_rejected(pass_, name);
  }

  // Keeps the timers of a node that is being written, or that this pass has no time for.
  void keep(const Node& node, const NodeAssessment& a, const QuietChange* seen) {
    if (seen != nullptr) {
      pass_.plan.timers.insert(pass_.plan.timers.end(), seen->timers.begin(), seen->timers.end());
    } else {
      keep_timers(view_of(pass_, node, a), pass_.index.policy(pass_.s.world, a.policy.view()).rollout,
                  released_since(pass_, node.meta.name, *a.change), pass_.ages);
    }
  }

  Pass& pass_;
  ChangeSteps steps_{pass_};
};

}  // namespace

void plan_changes_in_progress(Pass& pass) {
  ChangeWalk(pass).run();
}

}  // namespace gso
