// Any bytes as a label selector: no crash, and what is accepted means the same after it was
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace {

void read_labels(std::string_view text) {
  const k8s::Result<k8s::LabelSelector> selector = k8s::LabelSelector::parse(text);
  if (!selector) return;
  const std::string once = selector->to_string();
  const k8s::Result<k8s::LabelSelector> again = k8s::LabelSelector::parse(once);
  if (!again || again->to_string() != once) std::abort();
  // An object that has every label with the value that is asked for, and one that has none.
  k8s::StringMap labels;
  for (const auto& [key, value] : selector->match_labels) labels.set(key, value);
  for (const k8s::LabelRequirement& requirement : selector->match_expressions)
    if (!requirement.values.empty()) labels.set(requirement.key, requirement.values.front());
  if (selector->matches(labels) != again->matches(labels)) std::abort();
  if (selector->matches({}) != again->matches({})) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_labels(text);
  return 0;
}
