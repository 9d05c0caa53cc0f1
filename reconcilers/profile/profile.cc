// Parsing of a profile document, what a profile means, its revision.
#include "reconcilers/profile/profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile_decoder.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

bool is_nothing(const YamlDocument& document) {
  return document.root == nullptr || (document.root->kind == YamlNode::Kind::scalar && document.root->value.empty());
}

// Upstream reads one document and leaves the rest of the text alone, whatever it is.
void report_rest(YamlStream& stream, std::vector<Diagnostic>& diagnostics) {
  while (auto further = stream.next()) {
    if (!is_nothing(*further)) {
      const Position at = further->root->at;
      diagnostics.push_back({Severity::warning, "FurtherDocumentIgnored", "", at,
                             "only the first YAML document is used; the text that begins here is ignored"});
      return;
    }
  }
  if (stream.error()) {
    const YamlError& error = *stream.error();
    diagnostics.push_back(
        {Severity::warning, "FurtherTextIgnored", "", error.at,
         fmt::format("only the first YAML document is used; the text after it is ignored and does not parse: {}",
                     error.message)});
  }
}

std::int64_t replicas_of(const SharingSection* section, std::string_view resource, bool largest) {
  std::int64_t found = 0;
  if (section != nullptr) {
    for (const ReplicatedResource& entry : section->resources)
      if (entry.name == resource && (found == 0 || (largest && entry.replicas > found))) found = entry.replicas;
  }
  return found == 0 ? 1 : found;
}

// --- Its hash, and two of them compared.

constexpr std::string_view kRevisionPrefix = "v1-";

// FNV-1a with 64 bits: the same on every machine and in every build, and fast. Not for secrets.
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// Length before text, so that no two lists of fields read the same.
void append(std::string& out, std::string_view text) {
  out += fmt::format("{}:{};", text.size(), text);
}

using Fields = std::map<std::string, std::string>;

void add_section(const char* name, const std::optional<SharingSection>& section, Fields& out) {
  if (!section) return;
  const std::string path = fmt::format("sharing.{}", name);
  if (section->rename_by_default) out[path + ".renameByDefault"] = "true";
  if (section->fail_requests_greater_than_one)
    out[path + ".failRequestsGreaterThanOne"] = *section->fail_requests_greater_than_one ? "true" : "false";
  std::map<std::string, int> seen;
  for (const ReplicatedResource& resource : section->resources) {
    // A duplicate counts for GFD and the plugin in different ways.
    const int number = ++seen[resource.name];
    const std::string again = number > 1 ? fmt::format("#{}", number) : std::string();
    out[fmt::format("{}.resources[{}{}].replicas", path, resource.name, again)] = std::to_string(resource.replicas);
  }
}

Fields fields_of(const Profile& profile) {
  Fields out = profile.settings;
  if (profile.mig_strategy != "none") out["flags.migStrategy"] = profile.mig_strategy;
  add_section("mps", profile.mps, out);
  add_section("timeSlicing", profile.time_slicing, out);
  return out;
}

}  // namespace

std::string_view to_string(Strategy strategy) {
  return strategy == Strategy::mps ? "mps" : strategy == Strategy::time_slicing ? "time-slicing" : "none";
}

Strategy Profile::strategy() const {
  const auto shares = [](const SharingSection& section) {
    return std::any_of(section.resources.begin(), section.resources.end(),
                       [](const auto& r) { return r.replicas > 1; });
  };
  if (mps && shares(*mps)) return Strategy::mps;
  return time_slicing && shares(*time_slicing) ? Strategy::time_slicing : Strategy::none;
}

const SharingSection* Profile::active() const {
  return mps ? &*mps : time_slicing ? &*time_slicing : nullptr;
}

std::int64_t Profile::plugin_replicas(std::string_view resource) const {
  return replicas_of(active(), resource, true);
}

std::int64_t Profile::gfd_replicas(std::string_view resource) const {
  return replicas_of(active(), resource, false);
}

bool excludes_kai(const Profile* profile) {
  return profile != nullptr && profile->strategy() != Strategy::none;
}

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::find(diagnostics, Severity::error, &Diagnostic::severity) != diagnostics.end();
}

bool ParsedProfile::valid() const {
  return !has_errors(diagnostics);
}

std::string ParsedProfile::first_error(const std::set<std::string_view>& but) const {
  for (const Diagnostic& d : diagnostics) {
    if (d.severity == Severity::error && !but.contains(d.code)) {
      return d.path.empty() ? fmt::format("line {}: {}", d.at.line, d.message)
                            : fmt::format("line {}: {}: {}", d.at.line, shown_value(d.path), d.message);
    }
  }
  return "";
}

ParsedProfile parse_profile_node(const YamlNode& root) {
  ParsedProfile parsed;
  const DocumentValue value = to_document_value(root, DecodeTarget::config, parsed.diagnostics);
  if (!has_errors(parsed.diagnostics)) {
    const DecodedProfile decoded = decode_profile(value, parsed.diagnostics);
    parsed.accepted = !has_errors(parsed.diagnostics);
    parsed.profile = check_profile(decoded, parsed.diagnostics);
  }
  sort_and_limit(parsed.diagnostics);
  return parsed;
}

void add_diagnostics(const YamlError& error, std::vector<Diagnostic>& diagnostics) {
  if (error.cause.line > 0) diagnostics.push_back({Severity::error, error.code, "", error.cause, error.cause_message});
  diagnostics.push_back({Severity::error, error.code, "", error.at, error.message});
}

void sort_and_limit(std::vector<Diagnostic>& diagnostics) {
  constexpr int kMostOfAKind = 100;
  std::ranges::stable_sort(diagnostics, {}, &Diagnostic::at);
  int errors = 0;
  int others = 0;
  const auto dropped = std::erase_if(diagnostics, [&](const Diagnostic& d) {
    return ++(d.severity == Severity::error ? errors : others) > kMostOfAKind;
  });
  if (dropped > 0)
    diagnostics.push_back({Severity::info, "MoreNotShown", "", {}, fmt::format("{} more not shown", dropped)});
}

ParsedProfile parse_profile(std::string_view text) {
  YamlStream stream(text);
  const auto document = stream.next();
  if (!document) {
    ParsedProfile parsed;  // Nothing in it: a profile without sharing.
    parsed.accepted = !stream.error();
    if (stream.error()) add_diagnostics(*stream.error(), parsed.diagnostics);
    return parsed;
  }
  ParsedProfile parsed = parse_profile_node(*document->root);
  report_rest(stream, parsed.diagnostics);
  return parsed;
}

std::string revision_of(const Profile& profile) {
  std::string canonical;
  append(canonical, profile.mig_strategy);
  append(canonical, to_string(profile.strategy()));
  if (const SharingSection* active = profile.active(); active != nullptr) {
    append(canonical, active->rename_by_default ? "renamed" : "named");
    append(canonical, active->fail_requests_greater_than_one.value_or(profile.mps.has_value()) ? "one" : "many");
    std::set<std::string_view> names;
    for (const ReplicatedResource& resource : active->resources) names.insert(resource.name);
    for (const std::string_view name : names) {
      append(canonical, name);
      append(canonical, std::to_string(profile.plugin_replicas(name)));
      append(canonical, std::to_string(profile.gfd_replicas(name)));
    }
  }
  for (const auto& [path, value] : profile.settings) {
    append(canonical, path);
    append(canonical, value);
  }
  return fmt::format("{}{:016x}", kRevisionPrefix, fnv1a(canonical));
}

bool known_revision_format(std::string_view revision) {
  return revision.starts_with(kRevisionPrefix) && revision.size() == kRevisionPrefix.size() + 16 &&
         revision.find_first_not_of("0123456789abcdef", kRevisionPrefix.size()) == std::string_view::npos;
}

std::vector<FieldChange> profile_changes(const Profile& before, const Profile& after) {
  std::map<std::string, FieldChange> changes;
  for (const auto& [name, value] : fields_of(before)) changes[name] = {name, value, ""};
  for (const auto& [name, value] : fields_of(after)) {
    FieldChange& change = changes[name];
    change.field = name;
    change.after = value;
  }
  std::vector<FieldChange> out;
  for (const auto& [name, change] : changes)
    if (change.before != change.after) out.push_back(change);
  return out;
}

}  // namespace gso
