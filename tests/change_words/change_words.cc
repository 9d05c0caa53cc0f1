#include "tests/change_words/change_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
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

// Of the operator's own keys the name.
std::string without_prefix(const std::string& key) {
  return key.starts_with("gpusharing.dev/") ? key.substr(key.find('/') + 1) : key;
}

// "Updating, to v1-…, replaces gfd plugin, cordons": of the change what differs. A state that ends with its change is
// not said, nor are the uids of the pods to replace.
std::string patch_words(const PatchNode& patch, const Annotations& before, bool with_guards) {
  const Annotations after = patched(before, patch);
  const ChangeWords was = read_change(before), is = read_change(after);
  auto labels = patch.set, annotations = patch.set_annotations;
  std::set<std::string> gone = patch.remove_annotations;
  gone.insert(patch.remove.begin(), patch.remove.end());
  const bool ends = was != is && is == ChangeWords{};
  if (ends) gone.erase(std::string(kStateLabel));
  std::vector<std::string_view> hidden{kChangeAnnotation, kOwnedAnnotation};
  if (!with_guards) hidden.insert(hidden.end(), {kScaleDownDisabled, kKarpenterDoNotDisrupt});
  for (const std::string_view key : hidden) {
    annotations.erase(std::string(key));
    gone.erase(std::string(key));
  }
  std::vector<std::string> out;
  if (const auto state = labels.extract(std::string(kStateLabel))) out.push_back(state.mapped());
  if (ends) out.emplace_back("change ends");
  if (!is.to.empty() && (is.to != was.to || is.pods != was.pods))
    out.push_back(fmt::format("to {}, replaces {}{}", is.to, is.pods.empty() ? "nothing" : "",
                              fmt::join(std::views::keys(is.pods), " ")));
  if (is.touched && !was.touched) out.emplace_back("touched");
  if (patch.unschedulable)
    out.emplace_back(*patch.unschedulable ? "cordons" : "uncordons");
  else if (was.cordoned != is.cordoned)
    out.emplace_back(is.cordoned ? "takes the cordon for its own" : "leaves the cordon");
  if (!is.retry.empty() && is.retry != was.retry) out.push_back("failed with retry " + is.retry);
  for (const auto& [key, value] : labels) out.push_back(fmt::format("{}={}", key, value));
  if (const std::string owned = owned_words(after); owned != owned_words(before)) out.push_back("owns " + owned);
  for (const std::string& key : gone) out.push_back("no " + without_prefix(key));
  for (const auto& [key, value] : annotations) {
    Json json = Json::parse(value, nullptr, false);
    if (json.is_object()) json.erase("v");  // The version of the format.
    out.push_back(without_prefix(key) + ": " + (json.is_object() ? document_words(json) : value));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

// The lines under way, each with its doings; of the last one of these what it does, and why.
struct Line {
  std::string who;
  std::vector<std::string> doings;
  std::string last = {};
};

// On the line of that node or record: "a01: deletes plugin gfd (Restart!)".
void add(std::vector<Line>& lines, const std::string& who, const std::string& verb, const std::string& thing,
         const std::string& why) {
  auto line = std::ranges::find(lines, who, &Line::who);
  if (line == lines.end()) line = lines.insert(lines.end(), {who, {}});
  if (!verb.empty() && line->last == verb + why) {
    std::string& last = line->doings.back();
    last.insert(last.size() - why.size(), " " + thing);
  } else {
    line->doings.push_back(verb + (verb.empty() ? "" : " ") + thing + why);
  }
  line->last = verb + why;
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

std::string document_words(const Json& document) {
  std::vector<std::string> out;
  for (const auto& [key, value] : document.items()) {
    if (value == 0 || value == false || value.empty()) continue;
    std::string words = value.is_object() ? "{" + document_words(value) + "}" : value.dump();
    if (value.is_string()) words = value;
    if (value.is_array()) words = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " "));
    out.push_back(value == true ? key : key + " " + words);
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::vector<std::string> action_lines(const std::vector<PlannedAction>& actions,
                                      const std::function<Annotations(const std::string&)>& annotations_of_node,
                                      bool with_guards) {
  std::vector<Line> lines;
  std::map<std::string, Annotations> known;  // As changed by the actions so far.
  for (const PlannedAction& planned : actions) {
    const std::string by = planned.reconciler == "sharing.rollout" ? "" : " by " + planned.reconciler;
    const std::string why = fmt::format(" ({}{}{})", planned.why.code, planned.disruptive ? "!" : "", by);
    const auto* write = std::get_if<WriteConfigMap>(&planned.action);
    std::string line;
    if (const auto* patch = std::get_if<PatchNode>(&planned.action)) {
      if (!known.contains(patch->name)) known[patch->name] = annotations_of_node(patch->name);
      Annotations& before = known[patch->name];
      add(lines, patch->name, "", patch_words(*patch, before, with_guards), why);
      before = patched(std::move(before), *patch);
    } else if (const auto* pod = std::get_if<DeletePod>(&planned.action); pod && pod->pod.ns == "gpu-operator") {
      add(lines, planned.node, "deletes", pod->pod.name.substr(0, pod->pod.name.find("-" + planned.node)), why);
    } else if (const auto* evicted = std::get_if<EvictPod>(&planned.action)) {
      add(lines, planned.node, "evicts", k8s::to_string(evicted->pod), why);
    } else if (write && write->remove.empty() && write->set.size() == 1 && write->set.contains("baseline.json")) {
      add(lines, "record", "", planned.why.code, "");
    } else if (const auto* event = std::get_if<RecordEvent>(&planned.action)) {
      line = fmt::format("{} {} {} {}/{}: {}", event->warning ? "Warning" : "Event", event->regarding.kind,
                         event->regarding.name, event->why.code, event->verb, event->why.message);
    } else if (const auto* status = std::get_if<PatchStatus>(&planned.action)) {
      line = fmt::format("PatchStatus {} {}{}", status->object.kind, status->object.name, why);
    } else {
      line = print(planned).substr(by.empty() ? planned.reconciler.size() + 3 : 0);
    }
    if (!line.empty()) lines.push_back({"", {line}});
  }
  std::vector<std::string> out;
  for (const Line& line : lines)
    out.push_back(fmt::format("{}{}{}", line.who, line.who.empty() ? "" : ": ", fmt::join(line.doings, "; ")));
  return out;
}

}  // namespace gso::test
