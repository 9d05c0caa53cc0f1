// The objects of a text that affect which profile reaches which node, and the pods that need other objects to be
// judged: lint_cluster, lint_kai and lint_pods look at those of all files together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

class ObjectCollector {
 public:
  // `objects` gets what is collected; null: nothing is.
  explicit ObjectCollector(std::vector<ClusterObject>* objects) : objects_(objects) {}

  // `source`: of the object's document.
  void add(const DocumentValue& value, std::string_view kind, const std::string& source);
  // The pods of a workload, as a Pod of its name.
  void add_template(const DocumentValue& workload, std::string_view kind, const PodTemplate& of,
                    const std::string& source);

 private:
  // The name of an object; null: it has none, or nothing is collected.
  [[nodiscard]] const DocumentValue* name_of(const DocumentValue& value) const;
  ClusterObject& append(std::string_view kind, std::string_view document_kind, const DocumentValue& metadata,
                        nlohmann::json json, const std::string& source);

  std::vector<ClusterObject>* objects_;
};

}  // namespace gso
