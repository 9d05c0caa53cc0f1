// The words of a SharingPolicy's closed lists, each beside its value: what is read, checked, printed and offered as a
// flag.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "reconcilers/model/policy.h"

namespace gso {

template <class E>
struct PolicyWord {
  std::string_view text;
  E value;
};

inline constexpr PolicyWord<PolicyMode> kPolicyModeWords[] = {
    {"Enforce", PolicyMode::enforce}, {"Approve", PolicyMode::approve}, {"Observe", PolicyMode::observe}};
inline constexpr PolicyWord<WorkloadMode> kWorkloadModeWords[] = {{"WaitForIdle", WorkloadMode::wait_for_idle},
                                                                  {"Evict", WorkloadMode::evict},
                                                                  {"Interrupt", WorkloadMode::interrupt}};
inline constexpr PolicyWord<OnFailure> kOnFailureWords[] = {{"Pause", OnFailure::pause},
                                                            {"Rollback", OnFailure::rollback}};
inline constexpr PolicyWord<Mechanism> kMechanismWords[] = {{"NodeByNode", Mechanism::node_by_node},
                                                            {"DaemonSetRestart", Mechanism::daemonset_restart}};
inline constexpr PolicyWord<DeletionPolicy> kDeletionPolicyWords[] = {{"Retain", DeletionPolicy::retain},
                                                                      {"Revert", DeletionPolicy::revert}};

// The word of the value; `words`: its table, which has each value.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::string_view word_of(const PolicyWord<E> (&words)[N], E value) {
  for (const PolicyWord<E>& word : words) {
    if (word.value == value) return word.text;
  }
  return {};
}

// The words alone.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> texts_of(const PolicyWord<E> (&words)[N]) {
  std::array<std::string_view, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = words[i].text;
  return out;
}

}  // namespace gso
