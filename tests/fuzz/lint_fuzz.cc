// Any bytes as a file of documents: no crash, at least one document, the checks of a whole cluster, and answers in both
// forms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "reconcilers/lint/lint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<gso::ClusterObject> objects;
  auto documents = gso::lint_text("input", text, {}, &objects);
  gso::lint_cluster(objects, documents);
  gso::lint_nos(objects, documents);
  gso::lint_kai(objects, {}, documents);
  gso::lint_pods(objects, documents);
  if (documents.empty() || gso::lint_json(documents).empty()) std::abort();
  for (const gso::LintedDocument& document : documents) {
    if (document.valid() && document.source.empty()) std::abort();
    static_cast<void>(gso::lint_report(document, gso::SourceLines(text)));
  }
  return 0;
}
