// See message_text.h.
#include "reconcilers/model/message_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gso {

std::string cut_message(std::string_view message) {
  if (message.size() <= kMostMessageBytes) return std::string(message);
  constexpr std::string_view kMore = "...";
  std::size_t end = kMostMessageBytes - kMore.size();
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(message[at]) & 0xC0U) == 0x80U; };
  while (end > 0 && continues(end)) --end;
  return std::string(message.substr(0, end)).append(kMore);
}

std::string first_names(const std::vector<std::string>& names, std::size_t total) {
  std::string out;
  const std::size_t shown = std::min(names.size(), kMostNames);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + names[i];
  const std::size_t all = std::max(names.size(), total);
  if (all > shown) out += fmt::format("{}and {} more", shown == 0 ? "" : " ", all - shown);
  return out;
}

}  // namespace gso
