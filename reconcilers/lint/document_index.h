// Finds the document of an object among all that were read, in constant time: a cluster has many of both.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reconcilers/lint/lint.h"

namespace gso {

class DocumentIndex {
 public:
  // Of the documents as they are now; keys of ConfigMaps are left out.
  explicit DocumentIndex(std::vector<LintedDocument>& documents);

  // nullptr: the object has no document of its own, which is so for ConfigMaps whose keys have their own.
  [[nodiscard]] LintedDocument* find(const ClusterObject& object);

 private:
  std::vector<LintedDocument>& documents_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace gso
