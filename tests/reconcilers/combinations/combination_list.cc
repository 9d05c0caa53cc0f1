// Which combinations there are, and how they are called.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "tests/reconcilers/combinations/combinations.h"

namespace gso::test {

namespace {

// Disruptive ones into, within and out of MPS, and those that leave running clients alone.
constexpr std::array<Change, 6> kChanges = {{{"mps-4", "mps-8", "mps-6", "mps-5"},
                                             {"ts-4", "ts-8", "ts-6", "ts-5"},
                                             {"ts-4", "mps-4", "mps-8", "mps-5"},
                                             {"ts-8", "ts-2-renamed", "ts-4-renamed", "ts-3-renamed"},
                                             {"mps-4", "ts-4", "ts-8", "ts-5"},
                                             {"mps-4", "mps-4-many", "mps-6-many", "mps-5-many"}}};
constexpr std::array<const char*, 6> kFaultNames = {
    "none", "plugin crashes", "sidecar is stuck", "labels stay wrong", "capacity stays wrong", "pod never gets ready"};
}  // namespace

std::string Combination::name() const {
  std::string out = fmt::format("{} to {}", change.from, change.to);
  out += canary ? ", canary" : "";
  out += percent ? ", budgets in percent" : ", budgets of one";
  if (fault != Fault::none) {
    out += fmt::format(", {} {}", kFaultNames[static_cast<std::size_t>(fault)],
                       fault_in_canary ? "on the first node" : "on a later node");
  }
  if (killed_every > 0) out += fmt::format(", killed after every {}. write from the {}. on", killed_every, killed_from);
  out += not_ready ? ", nodes NotReady" : "";
  out += pdb_refuses ? ", a PodDisruptionBudget refuses" : "";
  out += window_closes ? ", the window closes" : "";
  out += superseding == Superseding::by_another        ? ", superseded"
         : superseding == Superseding::by_the_old_one  ? ", edited back"
         : superseding == Superseding::by_a_broken_one ? ", edited into a profile with an error"
                                                       : "";
  out += old_drift ? ", 40 nodes with old drift" : "";
  out += kai ? ", KAI on two nodes" : "";
  return out;
}

namespace {

// Takes turns through `values`, each time that it is asked.
template <class T>
T next_of(const std::vector<T>& values, std::size_t& turn) {
  return values[turn++ % values.size()];
}

std::vector<Combination> product_of_yes_and_no() {
  std::vector<Combination> out;
  std::size_t live = 0, disruptive = 0, fault = 0, place = 0, killed = 0, from = 0, edit = 0;
  for (unsigned bits = 0; bits < 1U << 11U; ++bits) {
    const auto is = [bits](unsigned bit) { return (bits >> bit & 1U) != 0; };
    Combination c;
    c.change = kChanges[is(0) ? 2 * (disruptive++ % 3) : 2 * (live++ % 3) + 1];
    c.canary = is(1);
    c.percent = is(2);
    if (is(3)) c.fault = static_cast<Fault>(1 + fault++ % kFaults);
    if (is(3)) c.fault_in_canary = place++ % 3 == 0;
    if (is(4)) c.killed_every = next_of<int>({1, 3, 7}, killed);
    if (is(4)) c.killed_from = next_of<int>({1, 2, 3, 4, 5, 6, 7}, from);
    c.not_ready = is(5);
    c.pdb_refuses = is(6);
    c.window_closes = is(7);
    if (is(8))
      c.superseding = next_of<Superseding>(
          {Superseding::by_another, Superseding::by_the_old_one, Superseding::by_a_broken_one}, edit);
    c.old_drift = is(9);
    c.kai = is(10);
    out.push_back(c);
  }
  return out;
}

// One more dimension: every combination so far with every value of it.
template <class T>
std::vector<Combination> times(const std::vector<Combination>& so_far, const std::vector<T>& values,
                               void (*set)(Combination&, const T&)) {
  std::vector<Combination> out;
  for (const Combination& before : so_far) {
    for (const T& value : values) {
      out.push_back(before);
      set(out.back(), value);
    }
  }
  return out;
}

// Plackett and Burman's design for 11 dimensions: one row turned eleven times, and one of noes.
std::vector<Combination> pairs_of(const std::vector<Combination>& all) {
  constexpr unsigned kRow = 0b01000111011U, kDimensions = 11;
  std::vector<Combination> out{all[0]};
  for (unsigned turn = 0; turn < kDimensions; ++turn) {
    const unsigned row = kRow << turn | kRow >> (kDimensions - turn);
    out.push_back(all[row & (all.size() - 1)]);
  }
  return out;
}

std::vector<Combination> product_of_all_values() {
  std::vector<std::pair<Fault, bool>> faults = {{Fault::none, false}};
  for (int fault = 1; fault <= kFaults; ++fault) {
    for (const bool first : {false, true}) faults.emplace_back(static_cast<Fault>(fault), first);
  }
  const std::vector<bool> flags = {false, true};
  std::vector<Combination> out(1);
  out = times<Change>(out, {kChanges.begin(), kChanges.end()}, [](Combination& c, const Change& v) { c.change = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.canary = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.percent = v; });
  out = times<std::pair<Fault, bool>>(
      out, faults, [](Combination& c, const std::pair<Fault, bool>& v) { std::tie(c.fault, c.fault_in_canary) = v; });
  out = times<int>(out, {0, 1, 3, 7}, [](Combination& c, const int& v) { c.killed_every = c.killed_from = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.not_ready = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.pdb_refuses = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.window_closes = v; });
  out = times<Superseding>(
      out, {Superseding::none, Superseding::by_another, Superseding::by_the_old_one, Superseding::by_a_broken_one},
      [](Combination& c, const Superseding& v) { c.superseding = v; });
  out = times<bool>(out, flags, [](Combination& c, const bool& v) { c.old_drift = v; });
  return times<bool>(out, flags, [](Combination& c, const bool& v) { c.kai = v; });
}

}  // namespace

std::vector<Combination> all_combinations(Extent extent) {
  if (extent == Extent::every_value) return product_of_all_values();
  std::vector<Combination> out = product_of_yes_and_no();
  if (extent == Extent::yes_and_no) return out;
  if (extent == Extent::pairs) return pairs_of(out);
  std::vector<Combination> covering;
  for (unsigned bits = 0; bits < out.size(); ++bits) {
    // Of the code that these four span every word has five digits or more, so that any four are independent.
    constexpr unsigned kParities[] = {0b1111100000U, 0b1100011110U, 0b1010011001U, 0b10000101011U};
    const bool even = std::ranges::all_of(kParities, [&](unsigned p) { return std::popcount(bits & p) % 2 == 0; });
    if (even) covering.push_back(out[bits]);
  }
  return covering;
}

std::span<const Change> all_changes() {
  return kChanges;
}

}  // namespace gso::test
