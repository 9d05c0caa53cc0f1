// Queries and changes of a record.
#include "reconcilers/cluster/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"

namespace gso {

MachineId machine_id(std::string_view node_uid) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a: stable over releases and machines.
  for (const char c : node_uid) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return MachineId{hash};
}

std::string print_machine(MachineId machine) {
  return fmt::format("{:016x}", static_cast<std::uint64_t>(machine));
}

std::size_t MachineRecords::shard_of(MachineId machine) {
  // The high bits: the low ones of FNV depend on few bits of the last characters.
  return static_cast<std::size_t>(static_cast<std::uint64_t>(machine) >> 60U) % kShards;
}

namespace {

template <class Shard>
auto place_of(Shard& shard, MachineId machine) {
  return std::ranges::lower_bound(shard, machine, {}, [](const auto& entry) { return entry.first; });
}

}  // namespace

const MachineRecords::Shard& MachineRecords::shard(std::size_t index) const {
  static const Shard kEmpty;
  return shards_[index] ? *shards_[index] : kEmpty;
}

const MachineRecord* MachineRecords::find(MachineId machine) const {
  const Shard& here = shard(shard_of(machine));
  const auto at = place_of(here, machine);
  return at != here.end() && at->first == machine ? &at->second : nullptr;
}

void MachineRecords::set(MachineId machine, const MachineRecord& entry) {
  const MachineRecord* present = find(machine);
  if (present == nullptr ? entry.empty() : *present == entry) return;
  std::shared_ptr<const Shard>& slot = shards_[shard_of(machine)];
  // Copied once, then changed in place, because only this object holds it.
  if (!slot || slot.use_count() > 1) slot = slot ? std::make_shared<Shard>(*slot) : std::make_shared<Shard>();
  auto& mine = const_cast<Shard&>(*slot);  // NOLINT(cppcoreguidelines-pro-type-const-cast): made non-const above.
  const auto at = place_of(mine, machine);
  if (entry.empty())
    mine.erase(at);  // It is there, or nothing would have changed.
  else if (present == nullptr)
    mine.emplace(at, machine, entry);
  else
    at->second = entry;
}

std::size_t MachineRecords::size() const {
  std::size_t out = 0;
  for (const auto& part : shards_) out += part ? part->size() : 0;
  return out;
}

void MachineRecords::for_each(const std::function<void(MachineId, const MachineRecord&)>& visit) const {
  for (const auto& part : shards_) {
    if (!part) continue;
    for (const auto& [machine, entry] : *part) visit(machine, entry);
  }
}

std::set<MachineId> MachineRecords::differing(const MachineRecords& other) const {
  std::set<MachineId> out;
  for (std::size_t i = 0; i < kShards; ++i) {
    if (shares(i, other)) continue;
    for (const auto& [machine, entry] : shard(i)) {
      const MachineRecord* there = other.find(machine);
      if (there == nullptr || *there != entry) out.insert(machine);
    }
    for (const auto& [machine, entry] : other.shard(i))
      if (find(machine) == nullptr) out.insert(machine);
  }
  return out;
}

bool operator==(const MachineRecords& a, const MachineRecords& b) {
  for (std::size_t i = 0; i < MachineRecords::kShards; ++i)
    if (!a.shares(i, b) && a.shard(i) != b.shard(i)) return false;
  return true;
}

SharingPolicy recorded_spec(const SharingPolicy& policy) {
  SharingPolicy out = policy;
  out.status_json.clear();
  out.finalizers.clear();
  out.gone.reset();
  k8s::ObjectMeta meta;
  meta.name = policy.meta.name;
  meta.uid = policy.meta.uid;
  meta.creation_timestamp = std::chrono::floor<std::chrono::seconds>(policy.meta.creation_timestamp);
  meta.annotations = policy.meta.annotations;
  meta.annotations.erase(kRetriedRolloutsAnnotation);  // Long, and of objects.
  out.meta = std::move(meta);
  return out;
}

const FleetRecord::Failure* FleetRecord::failure(std::string_view policy, std::string_view config_map,
                                                 std::string_view key, std::string_view revision,
                                                 std::string_view retry) const {
  const auto it = std::ranges::find_if(failures, [&](const Failure& f) {
    return f.policy == policy && f.config_map == config_map && f.key == key && f.revision == revision &&
           !asks_again(f.retry, retry);
  });
  return it == failures.end() ? nullptr : &*it;
}

const RecordedSwitches* FleetRecord::rollout(std::string_view policy, std::string_view config_map, std::string_view key,
                                             std::string_view revision) const {
  const auto it = std::ranges::find_if(rollouts, [&](const RecordedSwitches& r) {
    return r.policy == policy && r.config_map == config_map && r.key == key && r.revision == revision;
  });
  return it == rollouts.end() ? nullptr : &*it;
}

std::optional<RecordedSwitches> FleetRecord::switches(std::string_view policy, std::string_view config_map,
                                                      std::string_view key, std::string_view revision,
                                                      std::string_view retry) const {
  const RecordedSwitches* entry = rollout(policy, config_map, key, revision);
  if (entry == nullptr || entry->left) return std::nullopt;
  RecordedSwitches out = *entry;
  if (asks_again(out.retry, retry)) out.aborted = out.undone = false;
  return out.any() ? std::optional(std::move(out)) : std::nullopt;
}

bool FleetRecord::is_node_label(std::string_view label) const {
  return label == kConfigLabel || node_labels.contains(std::string(label));
}

std::string_view FleetRecord::last_verified(std::string_view config_map, std::string_view key) const {
  const auto at = verified.find(fmt::format("{}/{}", config_map, key));
  return at == verified.end() ? std::string_view() : std::string_view(at->second);
}

bool FleetRecord::has_shown(std::string_view config_map, std::string_view key, std::string_view revision,
                            const std::string& product) const {
  if (revision.empty() || last_verified(config_map, key) != revision) return false;
  const auto products = verified_on.find(fmt::format("{}/{}", config_map, key));
  return products != verified_on.end() && products->second.contains(product);
}

bool FleetRecord::knows_key(std::string_view config_map, std::string_view key) const {
  const std::string id = fmt::format("{}/{}", config_map, key);
  return verified.contains(id) || previous.contains(id);
}

bool FleetRecord::note_remediation(const RecordedRemediation& attempt,
                                   const std::function<bool(const RecordedRemediation&)>& is_too_old) {
  const auto goes = [&](const RecordedRemediation& known) {
    return (known.machine == attempt.machine && known.component == attempt.component) || is_too_old(known);
  };
  const auto leaving = static_cast<std::size_t>(std::ranges::count_if(remediations, goes));
  if (remediations.size() - leaving >= kMostRemediations) return false;
  std::erase_if(remediations, goes);
  remediations.insert(std::ranges::lower_bound(remediations, attempt), attempt);
  return true;
}

const RecordedRemediation* FleetRecord::remediation(MachineId machine, std::string_view component) const {
  const auto at = std::ranges::find_if(remediations, [&](const RecordedRemediation& known) {
    return known.machine == machine && known.component == component;
  });
  return at == remediations.end() ? nullptr : &*at;
}

void FleetRecord::note_verified(const std::string& id, const std::string& to, std::string_view text,
                                const std::set<std::string>& products) {
  auto [at, added] = verified.try_emplace(id, to);
  if (!added && at->second != to) {
    previous[id] = at->second;
    at->second = to;
    verified_on.erase(id);
  }
  if (!products.empty()) verified_on[id].insert(products.begin(), products.end());
  keep_text(to, text);
}

void FleetRecord::note_shown(const std::string& id, const std::string& to, std::string_view text) {
  previous[id] = to;
  keep_text(to, text);
}

void FleetRecord::note(const std::string& id, const ShownKey& shown, std::string_view text) {
  shown.proven ? note_verified(id, shown.revision, text, shown.products) : note_shown(id, shown.revision, text);
}

namespace {

using Revisions = std::map<std::string, std::string>;  // By key.

bool names(const Revisions& revisions, const std::string& revision) {
  return std::ranges::any_of(revisions, [&](const auto& entry) { return entry.second == revision; });
}

}  // namespace

void FleetRecord::forget_texts() {
  std::erase_if(texts,
                [&](const auto& entry) { return !names(verified, entry.first) && !names(previous, entry.first); });
}

void FleetRecord::keep_text(const std::string& to, std::string_view text) {
  forget_texts();
  if (text.empty() || text.size() > kMaxText) return;
  texts.try_emplace(to, text);
  std::size_t size = 0;
  for (const auto& [revision, kept] : texts) size += kept.size();
  const auto goes = [&](const auto& entry) {
    const bool gone = size > kMaxTexts && entry.first != to && !names(verified, entry.first);
    if (gone) size -= entry.second.size();
    return gone;
  };
  std::erase_if(texts, goes);
  if (size > kMaxTexts) texts.erase(to);
}

namespace {

// `by`: how much later it can be.
std::chrono::sys_seconds second_of(k8s::WallTime time, k8s::Duration by = {}) {
  return std::chrono::floor<std::chrono::seconds>(time + by);
}

bool reaches(k8s::WallTime since, const std::optional<k8s::WallTime>& end, const ReadingTime& time,
             k8s::Duration difference) {
  return second_of(since) <= second_of(time.to, difference) &&
         (!end || second_of(time.from) <= second_of(*end, difference));
}

// Until when the key had a text of the list; nullopt: it still has it.
std::optional<k8s::WallTime> end_of(const std::vector<RecordedText>& texts, std::size_t i, const PresentText& present) {
  if (i + 1 < texts.size()) return texts[i + 1].since;
  return is_last(texts, present.revision) ? std::nullopt : std::optional(present.since);
}

}  // namespace

void add_texts_read(const std::vector<RecordedText>& texts, const PresentText& present, const ReadingTime& time,
                    k8s::Duration difference, ReadTexts& out) {
  bool had_present = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& revision = texts[i].revision;
    const bool is_present = revision == present.revision;
    had_present = had_present || is_present;
    const bool counts = is_present || (had_present && revision != kInvalidRevision);
    if (!counts || !reaches(texts[i].since, end_of(texts, i, present), time, difference)) continue;
    if (is_present)
      out.present = true;
    else
      out.others.insert(revision);
  }
  const bool has_come = !is_last(texts, present.revision) && reaches(present.first, std::nullopt, time, difference);
  out.present = out.present || has_come;
}

bool can_have_read_another(const std::vector<RecordedText>& texts, const PresentText& present,
                           std::string_view revision, const ReadingTime& time, k8s::Duration difference) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_other = texts[i].revision != revision && texts[i].revision != kInvalidRevision;
    if (is_other && reaches(texts[i].since, end_of(texts, i, present), time, difference)) return true;
  }
  return present.revision != revision && !is_last(texts, present.revision) &&
         reaches(present.first, std::nullopt, time, difference);
}

bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present) {
  const auto first = std::ranges::find(texts, present, &RecordedText::revision);
  return std::ranges::any_of(first, texts.end(), [&](const RecordedText& text) { return text.revision != present; });
}

std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts, std::string_view present) {
  return is_last(texts, present) ? texts.back().doubtful_until : std::nullopt;
}

bool is_last(const std::vector<RecordedText>& texts, std::string_view present) {
  return !texts.empty() && texts.back().revision == present;
}

void add_text(std::vector<RecordedText>& texts, RecordedText text) {
  texts.push_back(std::move(text));
  if (texts.size() <= kMostTexts) return;
  texts[1].revision = kUnknownText;
  texts.erase(texts.begin() + 2);
}

}  // namespace gso
