// See impersonation.h.
#include "k8sclient/auth/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace k8s {
namespace {

// A key as a part of a header's name: what no name can hold is percent-encoded, and so is the percent sign.
std::string escaped(std::string_view key) {
  constexpr std::string_view kMarks = "!#$&'*+-.^_`|~";
  std::string out;
  for (const char c : key) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kMarks.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

bool is_printable(const std::string& value) {
  return std::ranges::none_of(value, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> impersonation_headers(const Impersonation& impersonation) {
  std::vector<std::pair<std::string, std::string>> out;
  if (impersonation.user.empty()) {
    if (impersonation.uid.empty() && impersonation.groups.empty() && impersonation.extra.empty()) return out;
    return fail(Reason::invalid, "as-uid, as-groups and as-user-extra need `as`, the name of a user");
  }
  out.emplace_back("Impersonate-User", impersonation.user);
  if (!impersonation.uid.empty()) out.emplace_back("Impersonate-Uid", impersonation.uid);
  for (const std::string& group : impersonation.groups) out.emplace_back("Impersonate-Group", group);
  for (const auto& [key, values] : impersonation.extra) {
    for (const std::string& value : values) out.emplace_back("Impersonate-Extra-" + escaped(key), value);
  }
  for (const auto& [name, value] : out) {
    if (!is_printable(value))
      return fail(Reason::invalid, fmt::format("the value for {} has a control character", name));
  }
  return out;
}

}  // namespace k8s
