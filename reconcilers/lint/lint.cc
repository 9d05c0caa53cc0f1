// Kind detection, and the walk over the documents of a text.
#include "reconcilers/lint/lint.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/objects.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;  // A List of a whole cluster's ConfigMaps and Pods.

// The offset of the first line, after `skip` others and not at the beginning of the text, that begins a document.
std::size_t next_document(std::string_view text, int skip) {
  std::size_t at = 0;
  for (int line = 0; at < text.size(); ++line) {
    const std::string_view rest = text.substr(at);
    if (line >= skip && at > 0 && rest.starts_with("---") &&
        (rest.size() == 3 || rest[3] == '\n' || rest[3] == ' ' || rest[3] == '\r')) {
      return at;
    }
    const auto end = rest.find('\n');
    at = end == std::string_view::npos ? text.size() : at + end + 1;
  }
  return at;
}

std::string_view name_of(const DocumentValue& object) {
  const DocumentValue* metadata = object.find("metadata");
  return metadata == nullptr ? std::string_view() : metadata->string_at("name");
}

// The pods of a workload.
struct PodTemplate {
  const DocumentValue* pod = nullptr;  // With metadata and spec, as a Pod has them.
  std::string path;                    // What comes before the paths within it: "spec.template."
};

// Any object with containers in its spec that stands under a field named like a template: Deployment, Job, CronJob,
// PyTorchJob, RayCluster, … have it at different places.
void find_templates(const DocumentValue& value, const std::string& path, bool named, std::vector<PodTemplate>& out) {
  const DocumentValue* containers = named ? find_path(value, {"spec", "containers"}) : nullptr;
  if (containers != nullptr && containers->is_array()) {
    out.push_back({&value, path + "."});
    return;
  }
  for (const DocumentMember& member : value.members) {
    const bool is_template = member.key.ends_with("emplate");
    find_templates(member.value, path.empty() ? member.key : path + "." + member.key, is_template, out);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i)
    find_templates(value.items[i], fmt::format("{}[{}]", path, i), named, out);
}

// Of a Deployment, StatefulSet, DaemonSet, Job, CronJob, and of any other object that has templates of pods. The
// pointers are into `object`.
std::vector<PodTemplate> pod_templates(const DocumentValue& object) {
  std::vector<PodTemplate> out;
  if (const DocumentValue* spec = object.find("spec")) find_templates(*spec, "spec", false, out);
  if (object.string_at("kind") == "PodTemplate") {
    if (const DocumentValue* pod = object.find("template")) find_templates(*pod, "template", true, out);
  }
  return out;
}

// The objects of a text that affect which profile reaches which node, and the pods that need other objects to be
// judged: lint_cluster, lint_kai and lint_pods look at those of all files together.
class ObjectCollector {
 public:
  // `objects` gets what is collected; null: nothing is.
  explicit ObjectCollector(std::vector<ClusterObject>* objects) : objects_(objects) {}

  // `source`: of the object's document.
  void add(const DocumentValue& value, std::string_view kind, const std::string& source) {
    static constexpr std::array<std::string_view, 11> kKinds{
        "Node", "DaemonSet", "ConfigMap",    "ClusterPolicy", "ControllerRevision", "SharingPolicy",
        "Pod",  "Config",    "RuntimeClass", "DeviceClass",   "ResourceSlice"};
    const DocumentValue* name = name_of(value);
    if (name == nullptr || std::ranges::find(kKinds, kind) == kKinds.end()) return;
    // The field that decides which profile nodes get.
    const DocumentValue* key =
        kind == "SharingPolicy" ? find_path(value, {"spec", "profile", "configMapKey"}) : nullptr;
    ClusterObject& object = append(kind, kind, *value.find("metadata"), to_json(value), source);
    object.at = key != nullptr ? key->at : name->at;
    if (const DocumentValue* config = find_path(value, {"spec", "devicePlugin", "config"});
        kind == "ClusterPolicy" && config)
      object.config = std::make_shared<const DocumentValue>(*config);
    if (kind == "Pod" && needs_other_objects(value)) object.pod = std::make_shared<const DocumentValue>(value);
  }

  // devicePlugin.config of the values of the GPU Operator's chart, which makes this ClusterPolicy of them.
  void add_cluster_policy(const DocumentValue& config, std::string_view document_kind, const std::string& source) {
    if (objects_ == nullptr) return;
    ClusterObject& object = objects_->emplace_back();
    object.source = source;
    object.kind = "ClusterPolicy";
    object.document_kind = document_kind;
    object.name = "cluster-policy";
    object.at = config.at;
    object.config = std::make_shared<const DocumentValue>(config);
    object.api_version = "nvidia.com/v1";
    nlohmann::json json = {{"apiVersion", object.api_version},
                           {"kind", object.kind},
                           {"metadata", {{"name", object.name}}},
                           {"spec", {{"devicePlugin", {{"config", to_json(config)}}}}}};
    fill_metadata(object.kind, json);
    object.json = dump(json);
  }

  // The pods of a workload, as a Pod of its name.
  void add_template(const DocumentValue& workload, std::string_view kind, const PodTemplate& of,
                    const std::string& source) {
    const DocumentValue* name = name_of(workload);
    if (name == nullptr || !needs_other_objects(*of.pod)) return;
    const DocumentValue* metadata = workload.find("metadata");
    nlohmann::json pod = to_json(*of.pod);
    pod["apiVersion"] = "v1";
    pod["kind"] = "Pod";
    if (!pod["metadata"].is_object()) pod["metadata"] = nlohmann::json::object();
    pod["metadata"]["name"] = name->text;
    if (const auto ns = metadata->string_at("namespace"); !ns.empty()) pod["metadata"]["namespace"] = ns;
    ClusterObject& object = append("Pod", kind, *metadata, std::move(pod), source);
    object.at = of.pod->at;
    object.pod = std::make_shared<const DocumentValue>(*of.pod);
    object.pod_path = of.path;
  }

 private:
  // The name of an object; null: it has none, or nothing is collected.
  const DocumentValue* name_of(const DocumentValue& value) const {
    return objects_ != nullptr ? find_path(value, {"metadata", "name"}) : nullptr;
  }

  ClusterObject& append(std::string_view kind, std::string_view document_kind, const DocumentValue& metadata,
                        nlohmann::json json, const std::string& source) {
    fill_metadata(std::string(kind), json);
    ClusterObject& object = objects_->emplace_back();
    object.source = source;
    object.kind = kind;
    object.document_kind = document_kind;
    object.ns = metadata.string_at("namespace");
    object.name = metadata.find("name")->text;
    const auto version = json.find("apiVersion");
    object.api_version = version != json.end() && version->is_string() ? version->get<std::string>() : std::string();
    object.json = dump(json);
    return object;
  }

  std::vector<ClusterObject>* objects_;
};

class Linter {
 public:
  Linter(const std::string& source, const PodRules& rules, std::vector<ClusterObject>* objects)
      : source_(source), rules_(rules), objects_(objects) {}

  std::vector<LintedDocument> run(std::string_view text) {
    const std::size_t bytes = text.size();
    // A manifest in JSON is read as JSON; a profile in JSON as the plugin reads it, which is as YAML.
    const auto respelt = json_for_yaml(text);
    const auto list_kind = list_kind_of(text);
    if (respelt && (list_kind || begins_with_manifest(*respelt))) text = *respelt;
    if (list_kind) {
      list(text, *list_kind);
      return std::move(documents_);
    }
    int line = 1;
    while (!text.empty()) {
      const std::size_t rest = read(text, line);
      line += static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(rest), '\n'));
      text.remove_prefix(rest);
    }
    if (documents_.empty()) {
      LintedDocument& nothing = add("Profile");
      nothing.profile = Profile{};
      nothing.diagnostics.push_back({Severity::info,
                                     "NothingWritten",
                                     "",
                                     {},
                                     "the file has no content; the plugin treats that as a profile without sharing"});
    }
    refuse_too_large(bytes);
    return std::move(documents_);
  }

 private:
  [[nodiscard]] std::string next_source() const { return fmt::format("{}#{}", source_, index_); }

  // A file that holds a profile becomes the value of a key; one of manifests can have any size.
  void refuse_too_large(std::size_t bytes) {
    const std::size_t most = YamlLimits().bytes;
    LintedDocument& first = documents_.front();
    const bool is_profile = std::ranges::all_of(documents_, [](const auto& each) { return each.kind == "Profile"; });
    if (bytes <= most || !is_profile || !first.valid()) return;
    first.profile.reset();
    first.diagnostics.push_back({Severity::error,
                                 "TooLarge",
                                 "",
                                 {1, 1},
                                 fmt::format("the text has {} bytes; at most {} are allowed", bytes, most)});
  }

  LintedDocument& add(std::string kind) {
    LintedDocument& document = documents_.emplace_back();
    document.source = next_source();
    ++index_;
    document.kind = std::move(kind);
    return document;
  }

  // The items of a List, one by one: the whole of a cluster would take many times its text in memory.
  void list(std::string_view text, const std::string& kind) {
    YamlStream stream(text, {.bytes = kMaxFileBytes});
    const YamlItem item = [&](const YamlNode& node) {
      const DocumentValue value = to_document_value(node, DecodeTarget::object);
      manifest(value, item_kind(value, kind), false);
    };
    if (const auto document = stream.next(item); document && documents_.empty()) {
      // What is left of it: everything but its items that are objects.
      const DocumentValue value = to_document_value(*document->root);
      manifest(value, value.string_at("kind"), true);
    }
    if (!stream.error()) (void)stream.next();  // The end of the text, or what follows the List by mistake.
    if (stream.error()) add_diagnostics(*stream.error(), add("Profile").diagnostics);
  }

  static bool begins_with_manifest(std::string_view text) {
    YamlStream stream(text, {.bytes = kMaxFileBytes});
    const auto document = stream.next();
    return document && is_manifest(to_document_value(*document->root));
  }

  // Reads documents up to the end or a syntax error; returns how many bytes of the text need no further reading.
  std::size_t read(std::string_view text, int first_line) {
    // After an error, document by document: each error means reading from there anew. The separator that ends the
    // document is read with it, because the error's message can be about that.
    const std::size_t end = last_error_ ? next_document(text, 0) : text.size();
    if (const std::size_t line_end = text.find('\n', end); line_end != std::string_view::npos)
      text = text.substr(0, line_end + 1);
    const YamlLimits limits{.bytes = kMaxFileBytes, .first_line = first_line};
    YamlStream stream(text, limits);
    std::optional<YamlDocument> document = stream.next();
    while (document) {
      std::optional<YamlDocument> following = stream.next();
      const bool first = documents_.empty() && !following;  // What follows, if anything, does not parse.
      judge(*document, first && !stream.error(), first);
      document = std::move(following);
    }
    if (!stream.error()) return std::min(end, text.size());
    const YamlError& error = *stream.error();
    const bool again = last_error_ == error.at;  // Reading has resumed at the broken document.
    const bool ignored = follows_the_profile(text, error.at.line);
    if (!documents_.empty() && (ignored || !again)) {
      first_counts("FurtherTextIgnored", error.at,
                   fmt::format("the text after it is ignored and does not parse: {}", error.message));
    }
    if (!ignored && !again) add_diagnostics(error, add("Profile").diagnostics);
    last_error_ = error.at;
    return error.code == "TooLarge" ? text.size() : next_document(text, error.at.line - first_line);
  }

  // Only the file's first document, a profile, precedes that line, without a separator: the document has ended earlier
  // than its author intended, and the plugin does not read the rest.
  [[nodiscard]] bool follows_the_profile(std::string_view text, int line) const {
    if (documents_.size() != 1 || profile_line_ == 0) return false;
    const std::size_t separator = next_document(text, profile_line_);
    return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(separator), '\n') + 1 > line ||
           separator == text.size();
  }

  // One document of the YAML text. `counts`: an empty one is checked as well.
  void judge(const YamlDocument& document, bool only, bool counts) {
    const YamlNode& root = *document.root;
    if (!counts && root.kind == YamlNode::Kind::scalar && root.value.empty()) {
      empty_first_ = empty_first_ || (documents_.empty() && profile_line_ == 0);
      return;  // Nothing between two separators.
    }
    const DocumentValue value = to_document_value(root, DecodeTarget::object);
    if (is_manifest(value)) {
      manifest(value, value.string_at("kind"), only);
      return;
    }
    if (lacks_kind(value)) {
      add("Profile").diagnostics.push_back(kind_missing(value));
      return;
    }
    if (const std::vector<ChartProfiles> charts = chart_profiles(value); !charts.empty()) {
      helm_values(charts, "HelmValues", "");
      return;
    }
    if (documents_.empty() && empty_first_) {
      // The plugin reads only the first document: the empty one, not the profile after it.
      LintedDocument& nothing = add("Profile");
      nothing.profile = Profile{};
      nothing.diagnostics.push_back(
          {Severity::warning, "FurtherDocumentIgnored", "", root.at,
           "the first YAML document is empty, which the plugin treats as a profile without sharing; the text that "
           "begins here is ignored. Remove the \"---\" before the text"});
    } else if (documents_.empty()) {
      profile_line_ = root.at.line;
    } else {
      first_counts("FurtherDocumentIgnored", root.at, "the text that begins here is ignored");
    }
    LintedDocument& linted = add("Profile");
    profile(parse_profile_node(root), linted);
  }

  // Lint checks every document of a file, but the plugin reads only the first one if that is a profile. Reported once.
  void first_counts(std::string code, Position at, const std::string& rest) {
    const auto further = [](const Diagnostic& d) {
      return d.code == "FurtherDocumentIgnored" || d.code == "FurtherTextIgnored";
    };
    std::vector<Diagnostic>& found = documents_.front().diagnostics;
    if (profile_line_ != 0 && std::none_of(found.begin(), found.end(), further)) {
      found.push_back({Severity::warning, std::move(code), "", at,
                       fmt::format("the plugin uses only the first YAML document; {}", rest)});
    }
  }

  static void profile(ParsedProfile parsed, LintedDocument& linted) {
    if (parsed.accepted) linted.profile = std::move(parsed.profile);
    linted.diagnostics = std::move(parsed.diagnostics);
  }

  // A List whose items are a list, or nothing at all.
  static bool has_items(const DocumentValue& value, std::string_view kind) {
    const DocumentValue* items = value.find("items");
    return kind.ends_with("List") && items != nullptr && items->is_array();
  }

  void manifest(const DocumentValue& value, std::string_view kind, bool only) {
    if (!has_items(value, kind)) {
      if (!kind.empty()) return object(value, kind, only);
      named(value, kind).diagnostics.push_back(kind_missing(value));
      return;
    }
    for (const DocumentValue& item : value.find("items")->items) {
      // The items of a PodList are Pods: the API server leaves out what they are.
      if (item.is_object()) manifest(item, item_kind(item, kind), false);
    }
    if (only && documents_.empty()) not_checked(add(std::string(kind)), value, "an empty list");
  }

  LintedDocument& named(const DocumentValue& value, std::string_view kind) {
    LintedDocument& linted = add(std::string(kind));
    linted.name = name_of(value);
    return linted;
  }

  void object(const DocumentValue& value, std::string_view kind, bool only) {
    const bool other = is_of_other_group(value);
    if (!other) objects_.add(value, kind, next_source());
    if (kind == "ConfigMap" && !other) return config_map(value, only);
    if (const std::vector<ChartProfiles> charts = release_profiles(value); !charts.empty())
      return helm_values(charts, kind, name_of(value));
    LintedDocument& linted = named(value, kind);
    std::vector<Diagnostic>& found = linted.diagnostics;
    if (kind == "Pod" && !other) {
      check_pod_at(value, "", rules_, found);
      return sort_and_limit(found);
    }
    if (is_known_object(value, kind)) check_strings(value, {}, found);
    const std::vector<PodTemplate> templates = pod_templates(value);
    for (const PodTemplate& each : templates) {
      check_pod_at(*each.pod, each.path, rules_, found);
      objects_.add_template(value, kind, each, linted.source);
    }
    if (kind == "SharingPolicy") linted.left_to_operator = check_policy(value, found);
    if (kind == "ClusterPolicy" && !other) check_cluster_policy(value, found);
    const DocumentValue* metadata = value.find("metadata");
    if (kind == "Node" && !other && metadata != nullptr) check_misspelt_labels_of_node(*metadata, found);
    if (found.empty() && templates.empty() && kind != "SharingPolicy") {
      not_checked(
          linted, value,
          other ? fmt::format("{} of {}", kind, shown_value(value.string_at("apiVersion"))) : std::string(kind));
    }
    sort_and_limit(found);
  }

  static void not_checked(LintedDocument& linted, const DocumentValue& value, std::string_view what) {
    linted.diagnostics.push_back(
        {Severity::info, std::string(kNotChecked), "kind", value.at,
         fmt::format("{} is not checked; lint checks profiles, ConfigMaps, SharingPolicies, Pods and workloads",
                     shown_value(what))});
  }

  // `only`: the file contains nothing else, so the ConfigMap is checked even if no value looks like a profile.
  void config_map(const DocumentValue& value, bool only) {
    if (is_record(value)) return not_checked(named(value, "ConfigMap"), value, "the operator's own record");
    const int index = index_;
    const bool checked = only || holds_profiles(value);
    std::vector<Diagnostic> found;
    check_strings(value, {}, found);
    if (checked) check_config_map(value, found);
    const std::vector<ConfigMapEntry> entries = checked ? entries_of(value) : std::vector<ConfigMapEntry>();
    if (!found.empty() || entries.empty()) named(value, "ConfigMap").diagnostics = std::move(found);
    for (const ConfigMapEntry& entry : entries) {
      index_ = index;  // All keys belong to one document of the file.
      key_of(entry, name_of(value), entry.binary ? "binaryData" : "data");
    }
    index_ = index + 1;
  }

  // They are one document of the file, with all profiles in them. `name`: of the object that has the values.
  void helm_values(const std::vector<ChartProfiles>& charts, std::string_view kind, std::string_view name) {
    const int index = index_;
    for (const ChartProfiles& chart : charts) {
      index_ = index;
      LintedDocument& whole = add(std::string(kind));
      whole.name = name;
      whole.diagnostics = chart.diagnostics;
      if (chart.config != nullptr) objects_.add_cluster_policy(*chart.config, kind, whole.source);
      for (const ConfigMapEntry& entry : entries_of(chart.config_map)) {
        index_ = index;
        key_of(entry, chart.config_map_name, chart.path);
      }
    }
    index_ = index + 1;
  }

  // Of a text whose lines were joined, the first error is the one to correct.
  static void blame_folding(std::vector<Diagnostic>& diagnostics) {
    const auto error = std::ranges::find(diagnostics, std::string_view("SyntaxError"), &Diagnostic::code);
    if (error != diagnostics.end())
      error->message += "; the value begins with \">\", which joins its lines: begin it with \"|\"";
  }

  // `parent`: the path of the mapping that has the key.
  void key_of(const ConfigMapEntry& entry, std::string_view name, std::string_view parent) {
    const DocumentMember& member = *entry.member;
    LintedDocument& linted = add("Profile");
    linted.name = name;
    linted.key = member.key;
    if (!member.value.is_string()) {
      const bool is_field = find_field(kConfigFields, member.key) != nullptr;
      linted.diagnostics.push_back(
          {Severity::error, "WrongType", fmt::format("{}.{}", parent, member.key), member.value.at,
           fmt::format("a ConfigMap value must be a string, but this is {}; {}", kind_name(member.value.kind),
                       is_field ? "if it is part of the profile above, indent it deeper than the profile's key"
                                : "begin it with \"|\"")});
      return;
    }
    if (!entry.readable) {
      linted.diagnostics.push_back({Severity::error, "BinaryDataInvalid", "binaryData." + member.key, member.value.at,
                                    "a value of binaryData must be base64, and the API server refuses this value; "
                                    "encode the value, or write the profile under data"});
      return;
    }
    profile(parse_profile(entry.text), linted);
    if (member.value.folded_block) blame_folding(linted.diagnostics);
    linted.value = entry.text;
    linted.line_before.reset();
    if (member.value.literal_block && !entry.binary) linted.line_before = member.value.at.line;
  }

  const std::string& source_;
  const PodRules& rules_;
  ObjectCollector objects_;
  std::vector<LintedDocument> documents_;
  int index_ = 0;
  std::optional<Position> last_error_;
  int profile_line_ = 0;      // Where the first document begins, if it is a profile; else 0.
  bool empty_first_ = false;  // The first document is empty.
};

}  // namespace

bool LintedDocument::valid() const {
  return !has_errors(diagnostics);
}

std::vector<LintedDocument> lint_text(const std::string& source, std::string_view text, const PodRules& rules,
                                      std::vector<ClusterObject>* objects) {
  return Linter(source, rules, objects).run(text);
}

}  // namespace gso
