// Lint: documents in, diagnostics out. Reads profile documents, ConfigMaps that hold them, SharingPolicies and Pods, in
// files of several documents and Lists. Pure: no file is opened here. What concerns several documents has files of its
// own (cluster.cc, pods_beside_objects.cc), and so have the answers (output.cc).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct DocumentValue;
struct Finding;
struct PlannerSettings;
struct World;

// The lines of a text for people: split once, however many diagnostics show one of them.
class SourceLines {
 public:
  // Lines end in "\n", "\r" or "\r\n", as editors show them. The text must outlive the object.
  explicit SourceLines(std::string_view text) : text_(text) {}
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // The line of that number, from 1, without its end and without a byte order mark; empty if there is none.
  [[nodiscard]] std::string_view line(int number) const;

 private:
  std::string_view text_;
  // Where the lines begin, as far as one was asked for.
  mutable std::vector<std::size_t> starts_{0};
};

struct LintedDocument {
  std::string source;     // "profiles.yaml#0": file and index of the document, Lists counted item by item.
  std::string kind;       // Profile, ConfigMap, SharingPolicy, Pod, or what the document calls itself.
  std::string name = {};  // metadata.name; of the ConfigMap for a profile out of one.
  std::string key;        // Of the ConfigMap.
  std::vector<Diagnostic> diagnostics = {};  // Lines count from 1 in the file; for a key of a ConfigMap, in its value.
  std::optional<Profile> profile = {};       // What upstream has in memory, where its parser accepts the document.
  // For texts shown to people: the line of the file before the value's first line. nullopt if the file contains the
  // value in another form (JSON, quoted).
  std::optional<int> line_before = 0;
  std::string value = {};  // The value itself, of a key.
  // Of a SharingPolicy: how many of its errors the API server does not see. The schema of the CRD contains neither the
  // grammar of labels nor which labels sharing changes, so the operator refuses those.
  std::size_t left_to_operator = 0;

  [[nodiscard]] bool valid() const;  // No diagnostic of severity error.
};

// Code of the one info that a document of another kind gets.
inline constexpr std::string_view kNotChecked = "NotChecked";

// An object that affects which profile reaches which node.
struct ClusterObject {
  std::string source;  // Of its document.
  std::string kind;
  std::string ns;
  std::string name;
  Position at;                                  // Of its name; of a SharingPolicy's configMapKey where it has one.
  std::shared_ptr<const DocumentValue> config;  // Of a ClusterPolicy: its spec.devicePlugin.config, or null.
  std::string json;                             // With the metadata that a server would have set.
  // Of a Pod that lint_kai or lint_pods can say more about: what was checked.
  std::shared_ptr<const DocumentValue> pod;
  std::string api_version;
  std::string document_kind;  // Of its document: "Deployment" for the pods of one.
  std::string pod_path;       // "spec.template." for the pods of a Deployment, empty for a Pod.
};

// All documents of a text. Never empty: an empty text is a profile without sharing. A document that does not parse is a
// Profile with one error; those after it are still read.
// `objects` gets what lint_cluster and lint_kai need.
[[nodiscard]] std::vector<LintedDocument> lint_text(const std::string& source, std::string_view text,
                                                    const PodRules& rules,
                                                    std::vector<ClusterObject>* objects = nullptr);

// Checks the objects of all files together, as the operator does before it touches a node: adds what is wrong to the
// documents of Nodes, DaemonSets, ConfigMaps, ClusterPolicies and SharingPolicies. Nothing happens where no DaemonSet,
// ClusterPolicy or SharingPolicy is among them.
void lint_cluster(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents);

// What lint_cluster() finds: what preflight says about DaemonSets, ConfigMaps and ClusterPolicies, about each Node (by
// name), what DRA offers on it beside the plugin, and what is wrong with SharingPolicies beside them.
[[nodiscard]] std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings);

// Profiles that nos has written are read by the device plugin of nos, which has other fields and rules. If the
// DaemonSet of that plugin mounts the ConfigMap, or only nodes of nos name the key, one info replaces the diagnostics
// of the official plugin's rules.
void lint_nos(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents);

// Pods that ask KAI for a share of a GPU against the Nodes, the kai-config and the RuntimeClasses among the objects:
// what can never be placed there. Where that kai-config names another scheduler, it decides which pods are KAI's: all
// Pods are checked anew. Nothing happens where no such object is among them.
void lint_kai(const std::vector<ClusterObject>& objects, const PodRules& rules, std::vector<LintedDocument>& documents);

// Pods against the MPS profiles among documents and objects: inference servers that reserve more of the whole GPU than
// a client has, and containers that ask for several GPUs. Nothing happens where no such profile is among them.
void lint_pods(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents);

// {"documents": […]}, stable: fields and their order are part of the contract.
[[nodiscard]] std::string lint_json(const std::vector<LintedDocument>& documents);

// What the profile is in the plugin's memory: {"sharing": {"timeSlicing": {…}, "mps": {…}}}.
[[nodiscard]] nlohmann::ordered_json normalized_json(const Profile& profile);

// The line of one diagnostic in lint_report(), of a document that has no `line_before`: place, severity, path, message
// and code.
[[nodiscard]] std::string lint_line(const LintedDocument& document, const Diagnostic& diagnostic);

// The diagnostics of one document for people: place, message, code, the source line and a caret. `text`: of the whole
// file.
[[nodiscard]] std::string lint_report(const LintedDocument& document, const SourceLines& text);

}  // namespace gso
