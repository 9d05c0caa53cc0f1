#include "reconcilers/model/json_access.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

#include "reconcilers/model/message_text.h"

namespace gso {

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Unprintable found = unprintable_at(json);
    if (found.bytes > 0) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(found.character));
    } else {
      out += json.front();
    }
    json.remove_prefix(found.bytes > 0 ? found.bytes : 1);
  }
  return out;
}

}  // namespace gso
