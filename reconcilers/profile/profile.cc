// Parsing of a profile document, and what a profile means.
#include "reconcilers/profile/profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile_checks.h"
#include "reconcilers/profile/profile_decoder.h"
#include "reconcilers/profile/profile_document.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::error; });
}

bool is_nothing(const YamlDocument& document) {
  return document.root == nullptr || (document.root->kind == YamlNode::Kind::scalar && document.root->value.empty());
}

// Upstream reads one document and leaves the rest of the text alone, whatever it is.
void report_rest(YamlStream& stream, std::vector<Diagnostic>& diagnostics) {
  while (auto further = stream.next()) {
    if (!is_nothing(*further)) {
      const Position at = further->root->at;
      diagnostics.push_back({Diagnostic::Severity::warning, "FurtherDocumentIgnored", "", at.line, at.column,
                             "only the first YAML document is used; the text that begins here is ignored"});
      return;
    }
  }
  if (stream.error()) {
    const YamlError& error = *stream.error();
    diagnostics.push_back(
        {Diagnostic::Severity::warning, "FurtherTextIgnored", "", error.at.line, error.at.column,
         fmt::format("only the first YAML document is used; the text after it is ignored and does not parse: {}",
                     error.message)});
  }
}

std::int64_t replicas_of(const SharingSection* section, std::string_view resource, bool largest) {
  std::int64_t found = 0;
  if (section != nullptr) {
    for (const ReplicatedResource& entry : section->resources) {
      if (entry.name == resource && (found == 0 || (largest && entry.replicas > found))) {
        found = entry.replicas;
      }
    }
  }
  return found == 0 ? 1 : found;
}

}  // namespace

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::mps:
      return "mps";
    case Strategy::time_slicing:
      return "time-slicing";
    case Strategy::none:
      break;
  }
  return "none";
}

Strategy Profile::strategy() const {
  const auto shares = [](const SharingSection& section) {
    return std::any_of(section.resources.begin(), section.resources.end(),
                       [](const auto& r) { return r.replicas > 1; });
  };
  if (mps && shares(*mps)) {
    return Strategy::mps;
  }
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

bool ParsedProfile::valid() const {
  return !has_errors(diagnostics);
}

std::string ParsedProfile::first_error() const {
  return first_error({});
}

std::string ParsedProfile::first_error(const std::set<std::string_view>& but) const {
  for (const Diagnostic& d : diagnostics) {
    if (d.severity == Diagnostic::Severity::error && !but.contains(d.code)) {
      return d.path.empty() ? fmt::format("line {}: {}", d.line, d.message)
                            : fmt::format("line {}: {}: {}", d.line, shown_value(d.path), d.message);
    }
  }
  return "";
}

ParsedProfile parse_profile_node(const YamlNode& root) {
  ParsedProfile parsed;
  const DocumentValue value = to_document_value(root, DecodeTarget::config, parsed.diagnostics);
  if (!has_errors(parsed.diagnostics)) {
    const RawProfile raw = ProfileDecoder(parsed.diagnostics).decode(value);
    parsed.accepted = !has_errors(parsed.diagnostics);
    parsed.profile = check_profile(raw, parsed.diagnostics);
  }
  sort_and_limit(parsed.diagnostics);
  return parsed;
}

ParsedProfile parse_empty_root(std::string_view text, const EmptyRoot& root) {
  ParsedProfile parsed;
  if (root.error) {
    add_diagnostics(*root.error, parsed.diagnostics);
    return parsed;
  }
  parsed = parse_profile(text.substr(0, root.length));
  parsed.diagnostics.push_back({Diagnostic::Severity::warning, "FurtherTextIgnored", "", root.behind.line,
                                root.behind.column,
                                "the document begins with an empty {} or []; the text after it is ignored"});
  return parsed;
}

void add_diagnostics(const YamlError& error, std::vector<Diagnostic>& diagnostics) {
  if (error.cause.line > 0) {
    diagnostics.push_back(
        {Diagnostic::Severity::error, error.code, "", error.cause.line, error.cause.column, error.cause_message});
  }
  diagnostics.push_back({Diagnostic::Severity::error, error.code, "", error.at.line, error.at.column, error.message});
}

void sort_and_limit(std::vector<Diagnostic>& diagnostics) {
  constexpr int kMostOfAKind = 100;
  std::stable_sort(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  int errors = 0;
  int others = 0;
  const auto dropped = std::erase_if(diagnostics, [&](const Diagnostic& d) {
    return ++(d.severity == Diagnostic::Severity::error ? errors : others) > kMostOfAKind;
  });
  if (dropped > 0) {
    diagnostics.push_back(
        {Diagnostic::Severity::info, "MoreNotShown", "", 0, 0, fmt::format("{} more not shown", dropped)});
  }
}

ParsedProfile parse_profile(std::string_view text) {
  if (const auto empty = find_empty_root(text)) {
    return parse_empty_root(text, *empty);
  }
  YamlStream stream(text);
  const auto document = stream.next();
  if (!document) {
    ParsedProfile parsed;  // Nothing in it: a profile without sharing.
    parsed.accepted = !stream.error();
    if (stream.error()) {
      add_diagnostics(*stream.error(), parsed.diagnostics);
    }
    return parsed;
  }
  ParsedProfile parsed = parse_profile_node(*document->root);
  report_rest(stream, parsed.diagnostics);
  return parsed;
}

}  // namespace gso
