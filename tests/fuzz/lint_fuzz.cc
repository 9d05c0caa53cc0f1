// Any bytes as a file of documents: no crash, at least one document, and answers in both forms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reconcilers/lint/lint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = gso::lint_text("input", text, {});
  if (documents.empty() || gso::lint_json(documents).empty()) {
    std::abort();
  }
  for (const gso::LintedDocument& document : documents) {
    if (document.valid() && document.source.empty()) {
      std::abort();
    }
    static_cast<void>(gso::lint_report(document, text));
  }
  return 0;
}
