// See document_index.h.
#include "reconcilers/lint/document_index.h"

namespace gso {
namespace {

std::string id_of(std::string_view source, std::string_view kind, std::string_view name) {
  std::string out;
  out.reserve(source.size() + kind.size() + name.size() + 2);
  for (const std::string_view part : {source, kind, name}) {
    out += part;
    out += '\0';
  }
  return out;
}

}  // namespace

DocumentIndex::DocumentIndex(std::vector<LintedDocument>& documents) : documents_(documents) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const LintedDocument& document = documents[i];
    if (document.key.empty()) places_.try_emplace(id_of(document.source, document.kind, document.name), i);
  }
}

LintedDocument* DocumentIndex::find(const ClusterObject& object) {
  const auto found = places_.find(id_of(object.source, object.document_kind, object.name));
  return found == places_.end() ? nullptr : &documents_[found->second];
}

}  // namespace gso
