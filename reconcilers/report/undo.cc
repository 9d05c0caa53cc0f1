// What `rollout undo` means: the key that goes back, and the revision that it goes back to.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/report/report.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

using UndoKey = std::pair<std::string, std::string>;  // "namespace/configmap", key.

class UndoChoice {
 public:
  UndoChoice(const World& world, const FleetIndex& index, const FleetRecord* record, std::string name,
             std::string revision)
      : world_(world),
        index_(index),
        record_(record),
        name_(std::move(name)),
        policy_(policy_of(name_)),
        revision_(std::move(revision)),
        rollouts_(all_rollouts(world)) {
    std::erase_if(rollouts_, is_of_template);
  }

  k8s::Result<Undo> run() {
    const k8s::Result<UndoKey> key = chosen_key();
    if (!key) return std::unexpected(key.error());
    Undo out;
    std::tie(out.config_map, out.key) = *key;
    out.rollout = rollout_of(*key);
    out.under_way = out.rollout != nullptr && !out.rollout->paused && is_under_way(facts_of(*out.rollout));
    if (std::string why = why_not(*key); !why.empty()) return refuse(std::move(why));
    std::string& revision = out.to.revision;
    std::string from = present_revision(*key);
    if (from.empty() && out.under_way) from = out.rollout->to_revision;
    out.to = revision_.empty() ? earlier_revision(world_, record_, key->first, key->second, from)
                               : EarlierRevision{revision_, "asked for"};
    if (revision_.empty() && was_undone_already(*key, revision)) {
      return refuse(
          fmt::format("nothing to undo: {} holds {}, whose rollout is complete, and the rollout to {} was given up "
                      "before. To roll that out again: gpu-sharing-operator rollout undo --to-revision {}",
                      in_words(*key), present_revision(*key), revision, revision));
    }
    find_others(*key, out);
    out.is_last_verified =
        record_ != nullptr && !revision.empty() && record_->last_verified(key->first, key->second) == revision;
    out.text = text_on_record(world_, record_, out.config_map, revision);
    return out;
  }

 private:
  static bool is_under_way(const RolloutFacts& facts) { return !facts.finished() && !facts.earlier_attempt; }
  static UndoKey key_of(const SharingRollout& rollout) { return {rollout.config_map, rollout.key}; }
  static std::string id_of(const UndoKey& key) { return key.first + "/" + key.second; }
  static std::string in_words(const UndoKey& key) { return fmt::format("{} key {}", key.first, key.second); }
  static std::unexpected<k8s::Error> refuse(std::string why) { return k8s::fail(k8s::Reason::invalid, std::move(why)); }

  // The chart's values have the text of a template.
  static bool is_of_template(const RolloutFacts& facts) { return !daemonset_of(facts.rollout->config_map).empty(); }

  // --- Which key.

  k8s::Result<UndoKey> chosen_key() {
    const auto any = [](const RolloutFacts&) { return true; };
    if (!name_.empty()) {
      const auto named = choose(world_, {name_, true}, any, "can be undone");
      if (!named) return std::unexpected(named.error());
      if (!policy_ && is_of_template(named->front())) {
        return refuse(
            fmt::format("rollout {} is of {}: go back with `helm rollback`, or change the chart's "
                        "standaloneMps values",
                        name_, describe_subject(named->front().rollout->config_map, {})));
      }
      if (!policy_) return key_of(*named->front().rollout);
    }
    if (!revision_.empty()) return only_one(keys_with_revision(), "have that revision in their history");
    std::set<UndoKey> running;
    for (const RolloutFacts& facts : rollouts_)
      if (is_named(facts, name_) && !facts.finished()) running.insert(key_of(*facts.rollout));
    if (!running.empty()) return only_one(running, "have rollouts in progress");
    if (const std::set<UndoKey> edited = keys_that_differ(); !edited.empty())
      return only_one(edited, "do not hold the last verified revision");
    return key_of_last();
  }

  k8s::Result<UndoKey> only_one(const std::set<UndoKey>& keys, std::string_view what) const {
    if (keys.size() == 1) return *keys.begin();
    if (keys.empty())
      return refuse(fmt::format("revision {} is in no key's history; see `rollout history`", revision_));
    std::string names;
    for (const UndoKey& key : keys) {
      const SharingRollout* rollout = rollout_of(key);
      names += (names.empty() ? "" : ", ") + in_words(key);
      if (rollout != nullptr) names += fmt::format(" (rollout {})", rollout->meta.name);
    }
    return refuse(fmt::format("{} keys {}: {}. Name a rollout of one of them", keys.size(), what, names));
  }

  // It is of that key, and of the policy that is named.
  [[nodiscard]] bool is_of(const UndoKey& key, const RolloutKey& rollout) const {
    return rollout.config_map == key.first && rollout.key == key.second && (!policy_ || rollout.policy == *policy_);
  }

  // Where the text is another one than that which was verified last, or there is none any more.
  [[nodiscard]] std::set<UndoKey> keys_that_differ() const {
    std::set<UndoKey> out;
    if (record_ == nullptr) return out;
    for (const auto& [of, nodes] : index_.impl().profile_rollouts) {
      const UndoKey key{of.config_map, of.key};
      const auto verified = record_->verified.find(id_of(key));
      const bool has_verified = verified != record_->verified.end() && !is_managed_key(of.key);
      if (has_verified && is_of(key, of) && present_revision(key) != verified->second) out.insert(key);
    }
    return out;
  }

  // Of the last rollout to the present revision where that is on record, else of the last one.
  k8s::Result<UndoKey> key_of_last() {
    const RolloutChoice any{name_, true};
    const auto ended = [](const RolloutFacts& facts) { return facts.phase != "Superseded" && !is_of_template(facts); };
    const auto present = [&](const RolloutFacts& facts) { return ended(facts) && is_present(*facts.rollout); };
    const auto at_present = choose(world_, any, present, "leads to the present revision");
    if (at_present) return key_of(*at_present->front().rollout);
    const auto done = choose(world_, any, ended, "can be undone");
    if (!done && name_.empty()) {
      return refuse(done.error().message +
                    ". No text was verified yet, so none can be restored: correct the ConfigMap with `kubectl edit`");
    }
    if (!done) return std::unexpected(done.error());
    return key_of(*done->front().rollout);
  }

  // It goes to what its policy's nodes should run at present.
  [[nodiscard]] bool is_present(const SharingRollout& rollout) const {
    return present_rollout(rollout, index_.impl()) != nullptr;
  }

  // The one that is named, else the one under way, else that to the present revision, else the newest.
  [[nodiscard]] const SharingRollout* rollout_of(const UndoKey& key) const {
    const auto rank = [&](const RolloutFacts& facts) {
      const SharingRollout& rollout = *facts.rollout;
      if (key_of(rollout) != key || !is_named(facts, name_)) return 0;
      if (rollout.meta.name == name_) return 4;
      return is_under_way(facts) ? 3 : is_present(rollout) ? 2 : 1;
    };
    const auto best = std::ranges::max_element(rollouts_, {}, rank);
    return best == rollouts_.end() || rank(*best) == 0 ? nullptr : best->rollout;
  }

  // --- Which revision.

  [[nodiscard]] std::string present_revision(const UndoKey& key) const {
    return gso::present_revision(world_, index_.impl(), key.first, key.second);
  }

  [[nodiscard]] bool is_known_for(const UndoKey& key, const std::string& revision) const {
    const auto holds = [&](const std::map<std::string, std::string>& revisions) {
      const auto at = revisions.find(id_of(key));
      return at != revisions.end() && at->second == revision;
    };
    if (record_ != nullptr && (holds(record_->verified) || holds(record_->previous))) return true;
    return std::ranges::any_of(rollouts_, [&](const RolloutFacts& facts) {
      return facts.rollout->to_revision == revision && key_of(*facts.rollout) == key;
    });
  }

  // Those in whose history the revision that was asked for is: of the policy that is named, or of any.
  [[nodiscard]] std::set<UndoKey> keys_with_revision(bool of_any = false) const {
    std::set<UndoKey> out;
    for (const RolloutFacts& facts : rollouts_)
      if (of_any || is_named(facts, name_)) out.insert(key_of(*facts.rollout));
    if (record_ != nullptr && (of_any || !policy_)) {
      for (const auto& [id, verified] : record_->verified) {
        const std::size_t slash = id.rfind('/');
        if (slash != std::string::npos) out.emplace(id.substr(0, slash), id.substr(slash + 1));
      }
    }
    std::erase_if(out, [&](const UndoKey& key) { return !is_known_for(key, revision_); });
    return out;
  }

  // Why the key cannot go to the revision that was asked for; empty: it can, or none was.
  [[nodiscard]] std::string why_not(const UndoKey& key) const {
    if (revision_.empty()) return {};
    if (is_known_for(key, revision_))
      return present_revision(key) == revision_ ? fmt::format("{} already holds {}", in_words(key), revision_) : "";
    const std::set<UndoKey> others = keys_with_revision(true);
    return fmt::format("{} is not in the history of {}{}; `rollout history` lists the recorded revisions", revision_,
                       in_words(key), others.empty() ? "" : ", but in that of " + in_words(*others.begin()));
  }

  // The last rollout of the key is complete and led to the present text, and that to `revision` was stopped before it,
  // as `undo` stops it: an undo would repeat what was undone.
  [[nodiscard]] bool was_undone_already(const UndoKey& key, const std::string& revision) const {
    const auto is_of_key = [&](const RolloutFacts& facts) { return key_of(*facts.rollout) == key; };
    const auto last = std::ranges::find_if(rollouts_, is_of_key);
    if (last == rollouts_.end() || last->phase != "Completed" || last->rollout->to_revision != present_revision(key))
      return false;
    const auto given_up = std::ranges::find_if(rollouts_, [&](const RolloutFacts& facts) {
      return is_of_key(facts) && facts.rollout->to_revision == revision;
    });
    if (given_up == rollouts_.end() || !given_up->finished() || given_up->phase == "Completed") return false;
    // Without that an edit has superseded it, and to go back to it is a wish.
    return given_up->rollout->paused || given_up->rollout->aborted || given_up->undone() || given_up->went_wrong();
  }

  void find_others(const UndoKey& key, Undo& out) const {
    constexpr std::size_t kMost = 3;
    const std::string present = present_revision(key);
    const auto add = [&](const std::string& revision, std::string_view why) {
      const bool known = std::ranges::find(out.others, revision, &EarlierRevision::revision) != out.others.end();
      if (known || revision.empty() || revision == present || revision == out.to.revision || out.others.size() >= kMost)
        return;
      if (!text_on_record(world_, record_, out.config_map, revision).empty())
        out.others.push_back({revision, std::string(why)});
    };
    // Nodes that run it already need no restart.
    const auto is_meant = [&](const RolloutKey& of) { return is_of(key, of); };
    for (const auto& [revision, count] : running_revisions(world_, index_.impl(), is_meant))
      if (is_known_for(key, revision))
        add(revision, fmt::format("{} {} it", counted(count, "node"), count == 1 ? "runs" : "run"));
    const std::string id = id_of(key);
    if (record_ != nullptr && record_->verified.contains(id)) add(record_->verified.at(id), "verified last");
    if (record_ != nullptr && record_->previous.contains(id)) add(record_->previous.at(id), "in use before that");
    for (const RolloutFacts& facts : rollouts_)
      if (key_of(*facts.rollout) == key && facts.phase == "Completed") add(facts.rollout->to_revision, "completed");
  }

  const World& world_;
  const FleetIndex& index_;
  const FleetRecord* record_;
  std::string name_;
  std::optional<std::string> policy_;
  std::string revision_;
  std::vector<RolloutFacts> rollouts_;
};

}  // namespace

k8s::Result<Undo> choose_undo(const World& world, const FleetIndex& index, const FleetRecord* record,
                              const std::string& name, const std::string& revision) {
  return UndoChoice(world, index, record, name, revision).run();
}

}  // namespace gso
