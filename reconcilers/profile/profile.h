// A sharing profile: one document of plugin config v1, parsed with upstream's exact semantics (YAML 1.1, non-strict,
// last duplicate wins, only the first document), with positions for every complaint.
// Source of the rules: the NVIDIA device plugin's api/config/v1 (v0.20.0); see docs/profiles.md.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

struct YamlError;
struct YamlNode;

struct Position {
  int line = 0;    // From 1; 0 when there is no position.
  int column = 0;  // From 1, counted in code points.
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Diagnostic {
  using Severity = gso::Severity;
  Severity severity = Severity::error;
  std::string code;  // Stable, CamelCase: ReplicasBelowMinimum, UnknownField, …
  std::string path;  // sharing.mps.resources[0].replicas
  Position at;
  std::string message;
  std::string key = {};    // Of the ConfigMap, if one finding names the keys of all nodes that have this problem.
  std::string brief = {};  // The message beside the report of its cause; empty: the same.
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// One of severity error is among them.
[[nodiscard]] bool has_errors(const std::vector<Diagnostic>& diagnostics);

enum class Strategy { none, mps, time_slicing };
[[nodiscard]] std::string_view to_string(Strategy strategy);  // "none", "mps", "time-slicing": GFD's label values.

struct ReplicatedResource {
  std::string name;  // Full: nvidia.com/gpu, nvidia.com/mig-1g.5gb.
  std::int64_t replicas = 0;
  friend bool operator==(const ReplicatedResource&, const ReplicatedResource&) = default;
};

struct SharingSection {
  bool rename_by_default = false;
  std::optional<bool> fail_requests_greater_than_one;  // As written; absent and null are nullopt.
  std::vector<ReplicatedResource> resources;
  friend bool operator==(const SharingSection&, const SharingSection&) = default;
};

struct Profile {
  // Other fields of the document that components read (flags, gfd, imex), canonical: path -> scalar text. Part of the
  // revision, because a component reloads them too.
  std::map<std::string, std::string> settings;
  std::string mig_strategy = "none";
  std::optional<SharingSection> time_slicing;
  std::optional<SharingSection> mps;

  // mps with an entry of replicas > 1, else time-slicing, else none.
  [[nodiscard]] Strategy strategy() const;
  // The section that counts (mps overrides timeSlicing in any order), or nullptr.
  [[nodiscard]] const SharingSection* active() const;
  // Replicas of a resource by the given original name: the plugin's answer (the largest of duplicates); 1 if unshared.
  [[nodiscard]] std::int64_t plugin_replicas(std::string_view resource) const;
  // The same for GFD, which takes the first entry.
  [[nodiscard]] std::int64_t gfd_replicas(std::string_view resource) const;
  friend bool operator==(const Profile&, const Profile&) = default;
};

// S8: replicas multiply nvidia.com/gpu, but KAI's reservations require that one nvidia.com/gpu is one device: KAI must
// not share GPUs of a node with this profile. Null: the node has no valid profile, which creates no replicas.
[[nodiscard]] bool excludes_kai(const Profile* profile);

struct ParsedProfile {
  // Upstream's parser takes the document. It may still be invalid: a component exits on what it says.
  bool accepted = false;
  Profile profile;  // Meaningful only when `accepted`.
  std::vector<Diagnostic> diagnostics;
  [[nodiscard]] bool valid() const;  // No diagnostic of severity error.
  // The first error as "line 7: sharing.mps.resources[0].replicas: …", or empty. `but`: codes that are left out.
  [[nodiscard]] std::string first_error(const std::set<std::string_view>& but = {}) const;
};

// Never throws, never crashes; limits on depth, aliases and size are errors with a position.
[[nodiscard]] ParsedProfile parse_profile(std::string_view text);
// The same of this document alone, for callers that walk over several.
[[nodiscard]] ParsedProfile parse_profile_node(const YamlNode& root);

// Adds a diagnostic of the error, and a second one for the line that might be its cause.
void add_diagnostics(const YamlError& error, std::vector<Diagnostic>& diagnostics);
// Sorts by line and column; equal places keep their order. Keeps the first hundred errors and the first hundred others,
// and adds an info with the number of those that were dropped.
void sort_and_limit(std::vector<Diagnostic>& diagnostics);

// The values that are allowed, if the components refuse this value of a setting with fixed words ("flags.migStrategy");
// the words of a list are separated by commas. nullopt if they accept it.
[[nodiscard]] std::optional<std::string> word_complaint(std::string_view path, std::string_view text);

// "v1-" + 16 hex digits of a hash over the normalised profile: equal meaning, equal revision, on every cluster.
[[nodiscard]] std::string revision_of(const Profile& profile);
// False for a prefix this release does not know: such a revision reads as unrecorded, never as different.
[[nodiscard]] bool known_revision_format(std::string_view revision);

// What differs between two profiles, for people who approve a change, to whom a revision says nothing.
struct FieldChange {
  std::string field;   // sharing.mps.resources[nvidia.com/gpu].replicas
  std::string before;  // Empty: not set.
  std::string after;
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
};
// Fields that a component reads, by name. Empty if both mean the same.
[[nodiscard]] std::vector<FieldChange> profile_changes(const Profile& before, const Profile& after);

}  // namespace gso
