// What a document says it is: its kind and apiVersion, and whether the API server knows both together.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// A Kubernetes object, or what is meant to be one: it has a kind, and an apiVersion or metadata, or a kind that lint
// knows.
[[nodiscard]] bool is_manifest(const DocumentValue& value);

// Meant to be an object and without a kind: it has apiVersion and metadata, or writes "Kind".
[[nodiscard]] bool lacks_kind(const DocumentValue& value);

// Reports an object that has no kind, a misspelt one of those that lint knows, or no or a wrong apiVersion for its
// kind: the API server refuses it. False: it remains unknown what kind was meant, and nothing else of it can be
// checked. Kinds of API groups that lint does not know are left to their owners.
[[nodiscard]] bool check_kind(const DocumentValue& object, std::vector<Diagnostic>& diagnostics);

// The object is of another owner's API group, which has a kind of the same name: the Job of Volcano, the ClusterPolicy
// of Kyverno. Never true of a SharingPolicy.
[[nodiscard]] bool is_of_other_group(const DocumentValue& object);

}  // namespace gso
