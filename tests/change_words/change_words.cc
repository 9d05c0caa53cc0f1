#include "tests/change_words/change_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"

namespace gso::test {

namespace {

using Json = nlohmann::json;

std::string text_at(const Annotations& annotations, std::string_view key) {
  const auto entry = annotations.find(std::string(key));
  return entry == annotations.end() ? std::string() : entry->second;
}

const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto entry = object.find(name);
  return entry == object.end() ? kNone : *entry;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::set<std::string> texts_of(const Json& list) {
  std::set<std::string> out;
  if (!list.is_array()) return out;
  for (const Json& item : list)
    if (item.is_string()) out.insert(item.get<std::string>());
  return out;
}

std::map<std::string, std::set<std::string>> pods_in(const Json& lists) {
  std::map<std::string, std::set<std::string>> out;
  if (!lists.is_object()) return out;
  for (const auto& [component, uids] : lists.items())
    if (auto texts = texts_of(uids); !texts.empty()) out[component] = std::move(texts);
  return out;
}

// Labels that the operator owns: what was there before, and the policy that wrote the profile label.
std::string owned_words(const Annotations& annotations) {
  std::vector<std::string> out;
  const Json root = Json::parse(text_at(annotations, kOwnedAnnotation), nullptr, false);
  const Json& owned = member(root, "labels");
  if (owned.is_object()) {
    std::string written;
    for (const auto& [label, entry] : owned.items()) {
      const Json before = entry.is_object() ? member(entry, "before") : entry;
      out.push_back(fmt::format("{} was {}", label, before.is_string() ? before.get<std::string>() : "absent"));
      if (!entry.is_object() || !entry.contains("policy")) continue;
      written = fmt::format("policy {} wrote {}", text_of(member(entry, "policy")), text_of(member(entry, "value")));
    }
    if (!written.empty()) out.push_back(std::move(written));
  }
  return out.empty() ? "none" : fmt::format("{{{}}}", fmt::join(out, ", "));
}

std::string change_words(ChangeWords change, bool with_guards) {
  std::vector<std::string> out;
  if (!change.to.empty()) {
    out.push_back("to " + change.to);
    std::string pods;
    for (const auto& [component, uids] : change.pods) pods += fmt::format(" {}[{}]", component, fmt::join(uids, ","));
    out.push_back("replace" + (pods.empty() ? " nothing" : pods));
    if (change.touched) out.emplace_back("touched");
  }
  if (change.cordoned) out.emplace_back("cordon");
  if (with_guards && !change.guards.empty()) out.push_back(fmt::format("guards {}", fmt::join(change.guards, " ")));
  if (!change.retry.empty()) out.push_back("failed with retry " + change.retry);
  return out.empty() ? "none" : fmt::format("{{{}}}", fmt::join(out, ", "));
}

// The patch without what is said in words.
PatchNode unworded(PatchNode patch, bool with_guards) {
  std::vector<std::string_view> keys{kChangeAnnotation, kOwnedAnnotation};
  if (!with_guards) keys.insert(keys.end(), {kScaleDownDisabled, kKarpenterDoNotDisrupt});
  for (const std::string_view key : keys) {
    patch.set_annotations.erase(std::string(key));
    patch.remove_annotations.erase(std::string(key));
  }
  return patch;
}

}  // namespace

Annotations annotations_of(const Node& node) {
  Annotations out;
  for (const auto& entry : node.meta.annotations) out.emplace(entry.key.view(), entry.value.view());
  return out;
}

Annotations annotations_of(const Json& node) {
  Annotations out;
  const Json& annotations = member(member(node, "metadata"), "annotations");
  if (!annotations.is_object()) return out;
  for (const auto& [key, value] : annotations.items()) out[key] = text_of(value);
  return out;
}

ChangeWords read_change(const Annotations& annotations) {
  const Json change = Json::parse(text_at(annotations, kChangeAnnotation), nullptr, false);
  ChangeWords out;
  out.to = text_of(member(change, "to"));
  out.pods = pods_in(member(change, "pods"));
  out.touched = member(change, "touched") == true;
  out.cordoned = member(change, "cordoned") == true;
  out.guards = texts_of(member(change, "guards"));
  out.failed = member(change, "failed").is_object();
  out.retry = text_of(member(member(change, "failed"), "retry"));
  return out;
}

ChangeWords read_change(const Node& node) {
  return read_change(annotations_of(node));
}

ChangeWords read_change(const Json& node) {
  return read_change(annotations_of(node));
}

Annotations write_change(const ChangeWords& change) {
  if (change == ChangeWords{}) return {};
  Json out = {{"v", 1},
              {"policy", "default"},
              {"configMap", "gpu-operator/mps-config"},
              {"key", "any"},
              {"product", ""},
              {"from", ""},
              {"to", change.to},
              {"kind", "reshare"},
              {"cause", "edited"},
              {"served", change.served},
              {"pods", change.pods},
              {"begun", "2026-01-01T00:00:00Z"}};
  out["listed"] = out["begun"];
  if (change.pods.empty()) out["pods"] = Json::object();
  if (change.touched) out["touched"] = true;
  if (change.cordoned) out["cordoned"] = true;
  if (!change.guards.empty()) out["guards"] = change.guards;
  if (change.failed) out["failed"] = {{"why", "did not verify"}, {"retry", change.retry}};
  return {{std::string(kChangeAnnotation), out.dump()}};
}

bool has_change_annotations(const Annotations& annotations) {
  return annotations.contains(std::string(kChangeAnnotation));
}

std::optional<std::string> target_written_by(const PatchNode& patch) {
  const std::string to = read_change(patch.set_annotations).to;
  return to.empty() ? std::nullopt : std::optional(to);
}

Annotations patched(Annotations before, const PatchNode& patch) {
  for (const auto& [key, value] : patch.set_annotations) before[key] = value;
  for (const std::string& key : patch.remove_annotations) before.erase(key);
  return before;
}

std::string print_in_words(const PlannedAction& planned, const Annotations& before, bool with_guards) {
  const auto* patch = std::get_if<PatchNode>(&planned.action);
  if (patch == nullptr) return print(planned);
  const Annotations after = patched(before, *patch);
  // The words come after labels and annotations, and before what print() puts last.
  PatchNode first = unworded(*patch, with_guards);
  PatchNode last;
  last.name = patch->name;
  last.unschedulable = std::exchange(first.unschedulable, std::nullopt);
  last.resource_version = std::exchange(first.resource_version, std::nullopt);
  PlannedAction head;
  head.reconciler = planned.reconciler;
  head.action = first;
  PlannedAction tail = planned;
  tail.action = last;
  const std::size_t prefix = fmt::format("[{}] PatchNode {}", planned.reconciler, patch->name).size();
  std::string line = print(head);
  const std::string change = change_words(read_change(after), with_guards);
  if (change != change_words(read_change(before), with_guards)) line += " change=" + change;
  const std::string owned = owned_words(after);
  if (owned != owned_words(before)) line += " owned=" + owned;
  return line + print(tail).substr(prefix);
}

}  // namespace gso::test
