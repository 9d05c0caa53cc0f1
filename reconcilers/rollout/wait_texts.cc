#include "reconcilers/rollout/wait_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ranges>

#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/budgets.h"

namespace gso {
namespace {

constexpr std::string_view kPodsUse = "pods use these nodes: ";
constexpr std::string_view kNextClause = "; ";
constexpr std::string_view kNextGroup = kNextClause;
constexpr std::string_view kMoreGroups = "; and ";

using GroupWaits = std::vector<std::pair<std::string, std::string>>;

std::string group_of(std::string_view product) {
  return fmt::format("group {}", product.empty() ? "of unknown product" : product);
}

// "group NVIDIA-T4: "
std::string head_of(std::string_view product) {
  return group_of(product) + ": ";
}

std::vector<std::string> clauses_of(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& clause : std::views::split(text, kNextClause)) out.emplace_back(clause.begin(), clause.end());
  return out;
}

// What that group waits for. A full budget, and whatever else a group before it waits for as well, is said there.
std::string wait_beside_others(const GroupWaits& groups, std::size_t at) {
  const std::string& why = groups[at].second;
  if (!why.starts_with(fmt::format("{}: ", kNoSlot))) return why;
  const std::vector<std::string> clauses = clauses_of(why);
  for (std::size_t i = 0; i < at; ++i) {
    const std::vector<std::string> said = clauses_of(groups[i].second);
    if (said.front() != clauses.front()) continue;
    std::string out = fmt::format("{} (see {})", kNoSlot, group_of(groups[i].first));
    for (const std::string& clause : clauses) {
      if (std::ranges::find(said, clause) == said.end()) out += std::string(kNextClause) + clause;
    }
    return out;
  }
  return why;
}

}  // namespace

std::string joined_waits(const GroupWaits& groups) {
  if (groups.empty()) return {};
  const bool alike = std::ranges::all_of(groups, [&](const auto& group) { return group.second == groups[0].second; });
  if (alike) return groups[0].second;
  std::string out;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostNames); ++i) {
    out += fmt::format("{}{}{}", i == 0 ? "" : kNextGroup, head_of(groups[i].first), wait_beside_others(groups, i));
  }
  if (groups.size() > kMostNames)
    out += fmt::format("{}{}", kMoreGroups, counted(groups.size() - kMostNames, "more group"));
  return out;
}

std::string busy_nodes_text(const std::vector<std::string>& draining, std::int64_t most, std::string_view whose,
                            std::string_view budget) {
  return fmt::format(
      "{}they start when their own pods end, or those of {}{}; {} lets {} wait for {} pods at a time (half of {})",
      kPodsUse, draining.size() == 1 ? "" : "one of ", first_names(draining), whose, counted(most, "node"),
      most == 1 ? "its" : "their", budget);
}

std::string busy_nodes_text_in(const std::string& said, std::string_view product) {
  const std::string head = head_of(product);
  const bool of_all = said.starts_with(kPodsUse);
  const std::size_t at = of_all ? 0 : said.find(fmt::format("{}{}", head, kPodsUse));
  if (at == std::string::npos) return {};
  const std::string text = said.substr(of_all ? 0 : at + head.size());
  return text.substr(0, std::min(text.find(fmt::format("{}group ", kNextGroup)), text.find(kMoreGroups)));
}

}  // namespace gso
