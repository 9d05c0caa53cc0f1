// See object_kind.h.
#include "reconcilers/lint/object_kind.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/cluster/manifest_object.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr std::string_view kSharingPolicy = "SharingPolicy";

// A kind that lint knows.
struct KnownKind {
  std::string_view kind;
  std::string_view group;  // Empty: the core group.
  std::string_view version;
};
constexpr std::array<KnownKind, 17> kKnown{{{"Pod", "", "v1"},
                                            {"ConfigMap", "", "v1"},
                                            {"Node", "", "v1"},
                                            {"List", "", "v1"},
                                            {"PodTemplate", "", "v1"},
                                            {"ReplicationController", "", "v1"},
                                            {"Deployment", "apps", "v1"},
                                            {"StatefulSet", "apps", "v1"},
                                            {"DaemonSet", "apps", "v1"},
                                            {"ReplicaSet", "apps", "v1"},
                                            {"ControllerRevision", "apps", "v1"},
                                            {"Job", "batch", "v1"},
                                            {"CronJob", "batch", "v1"},
                                            {"RuntimeClass", "node.k8s.io", "v1"},
                                            {kSharingPolicy, "gpusharing.dev", "v1alpha1"},
                                            {"SharingRollout", "gpusharing.dev", "v1alpha1"},
                                            {"ClusterPolicy", "nvidia.com", "v1"}}};

const KnownKind* find_known(std::string_view kind) {
  const auto found = std::ranges::find(kKnown, kind, &KnownKind::kind);
  return found == kKnown.end() ? nullptr : &*found;
}

std::string_view group_of(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

// Any owner can add kinds to a group with a domain of his own. The others are Kubernetes' own.
bool belongs_to_others(std::string_view group) {
  return group.find('.') != std::string_view::npos && !group.ends_with(".k8s.io");
}

std::string text_of(const KnownKind& known) {
  return known.group.empty() ? std::string(known.version) : fmt::format("{}/{}", known.group, known.version);
}

// "sharingpolicies", "configmaps": what people call several of them.
bool is_plural(std::string_view kind, std::string_view known) {
  if (known.ends_with('y')) return equal_fold(kind, std::string(known.substr(0, known.size() - 1)) + "ies");
  return equal_fold(kind, std::string(known) + "s");
}

// The kind that is meant: another case, the plural, or one edit away. In the group of another owner it can be a kind of
// his.
const KnownKind* meant_kind(std::string_view kind, std::string_view api_version) {
  const std::string_view group = group_of(api_version);
  for (const KnownKind& known : kKnown) {
    const bool fits = api_version.empty() || group == known.group || !belongs_to_others(group);
    if (fits && (within_edits(kind, known.kind, 1) || is_plural(kind, known.kind))) return &known;
  }
  return nullptr;
}

// "Kind: Pod".
const DocumentMember* misspelt_kind(const DocumentValue& object) {
  const auto found =
      std::ranges::find_if(object.members, [](const DocumentMember& m) { return equal_fold(m.key, "kind"); });
  return found == object.members.end() ? nullptr : &*found;
}

void error(std::vector<Diagnostic>& out, std::string code, std::string path, Position at, std::string message) {
  out.push_back({Severity::error, std::move(code), std::move(path), at.line, at.column, std::move(message)});
}

void check_version(const DocumentValue& object, const KnownKind& known, std::vector<Diagnostic>& out) {
  const DocumentValue* version = object.find("apiVersion");
  const std::string right = text_of(known);
  if (version == nullptr || version->is_null() || (version->is_string() && version->text.empty())) {
    return error(
        out, "APIVersionMissing", "apiVersion", version == nullptr ? object.at : version->at,
        fmt::format("a {} needs an apiVersion, and the API server refuses it without one; write apiVersion: {}",
                    known.kind, right));
  }
  if (version->is_string() && version->text == right) return;
  error(out, "APIVersionWrong", "apiVersion", version->at,
        fmt::format("the API server has no {} in apiVersion {}; write {}", known.kind,
                    version->is_string() ? shown_value(version->text) : found_there(*version), right));
}

}  // namespace

bool is_manifest(const DocumentValue& value) {
  const std::string_view kind = value.string_at("kind");
  return !kind.empty() &&
         (value.find("apiVersion") != nullptr || value.find("metadata") != nullptr || find_known(kind) != nullptr);
}

bool lacks_kind(const DocumentValue& value) {
  if (value.find("kind") != nullptr || value.find("version") != nullptr) return false;
  const DocumentValue* metadata = value.find("metadata");
  const bool has_metadata = metadata != nullptr && metadata->is_object();
  const bool has_version = value.find("apiVersion") != nullptr;
  return (has_version && has_metadata) || ((has_version || has_metadata) && misspelt_kind(value) != nullptr);
}

bool is_of_other_group(const DocumentValue& object) {
  const KnownKind* known = find_known(object.string_at("kind"));
  const std::string_view group = group_of(object.string_at("apiVersion"));
  return known != nullptr && known->kind != kSharingPolicy && group != known->group && belongs_to_others(group);
}

bool check_kind(const DocumentValue& object, std::vector<Diagnostic>& out) {
  const DocumentValue* kind = object.find("kind");
  if (kind == nullptr || kind->is_null() || kind->text.empty()) {
    if (auto commented = commented_kind(object)) {
      error(out, "KindMissing", "kind", commented->at, std::move(commented->message));
      return false;
    }
    const DocumentMember* misspelt = kind == nullptr ? misspelt_kind(object) : nullptr;
    error(out, "KindMissing", "kind", misspelt == nullptr ? object.at : misspelt->key_at,
          misspelt == nullptr
              ? std::string("the object has no kind, and the API server refuses it; write its kind")
              : fmt::format("the object has no kind, and the API server refuses it; write \"kind\" for \"{}\"",
                            shown_value(misspelt->key)));
    return false;
  }
  if (const KnownKind* known = find_known(kind->text)) {
    // The policy's own check says more about its apiVersion.
    if (!is_of_other_group(object) && known->kind != kSharingPolicy) check_version(object, *known, out);
    return true;
  }
  const KnownKind* meant = meant_kind(kind->text, object.string_at("apiVersion"));
  if (meant == nullptr) return true;
  error(out, "KindMisspelt", "kind", kind->at,
        fmt::format("the API server knows no kind \"{}\"; did you mean {}?", shown_value(kind->text), meant->kind));
  return false;
}

}  // namespace gso
