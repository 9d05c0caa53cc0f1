// Labels and annotations that look like one that a component reads, and are not.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"

namespace gso {

// Of a Pod's metadata: KAI's annotations misspelt or written as labels, and the values of those of the mode
// NvFractions, with the containers of `spec` that they name.
void check_misspelt_metadata(const DocumentValue& metadata, const DocumentValue& spec, std::vector<Diagnostic>& found);

// Of a Node's metadata: the label that chooses its profile, nos' label, the operator's switches.
void check_misspelt_labels_of_node(const DocumentValue& metadata, std::vector<Diagnostic>& found);

// An annotation by which a Pod asks KAI for a share of a GPU.
[[nodiscard]] bool is_kai_annotation(std::string_view name);

}  // namespace gso
