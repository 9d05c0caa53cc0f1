#include "tests/conformance/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "reconcilers/cluster/manifests.h"

namespace gso::conformance {
namespace {

using nlohmann::json;

const std::map<std::string, k8s::Method, std::less<>> kMethods{{"GET", k8s::Method::get},
                                                               {"POST", k8s::Method::post},
                                                               {"PUT", k8s::Method::put},
                                                               {"PATCH", k8s::Method::patch},
                                                               {"DELETE", k8s::Method::del}};

const std::map<std::string, std::string, std::less<>> kContentTypes{
    {"object", "application/json"},
    {"merge", "application/merge-patch+json"},
    {"strategic", "application/strategic-merge-patch+json"},
    {"json", "application/json-patch+json"},
    {"apply", "application/apply-patch+yaml"}};

const std::map<std::string, std::string, std::less<>> kForms{
    {"table", "application/json;as=Table;v=v1;g=meta.k8s.io"},
    {"metadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
    {"metadata-list", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}};

// The word's meaning in the table, or the word itself (a media type written out).
std::string meaning(const std::map<std::string, std::string, std::less<>>& table, const std::string& word) {
  const auto found = table.find(word);
  return found == table.end() ? word : found->second;
}

k8s::Result<std::string> read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return k8s::fail(k8s::Reason::invalid, fmt::format("cannot read {}", path));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

k8s::Result<json> read_yaml(const std::string& path) {
  k8s::Result<std::string> text = read_text(path);
  if (!text) return std::unexpected(text.error());
  k8s::Result<std::string> parsed = yaml_to_json(*text);
  if (!parsed) return k8s::fail(k8s::Reason::invalid, fmt::format("{}: {}", path, parsed.error().message));
  return json::parse(*parsed, nullptr, false);
}

std::vector<std::string> strings(const json& value) {
  std::vector<std::string> texts;
  for (const json& text : value) texts.push_back(text.get<std::string>());
  return texts;
}

// Which request or action a step is; false when its key is no such word.
bool set_action(Step& step, const std::string& key, const json& value) {
  if (const auto method = kMethods.find(key); method != kMethods.end()) {
    step.kind = Step::Kind::request;
    step.method = method->second;
  } else if (key == "WATCH") {
    step.kind = Step::Kind::watch;
  } else if (key == "EVENTS") {
    step.kind = Step::Kind::events;
  } else if (key == "COMPACT") {
    step.kind = Step::Kind::forget_history;
  } else {
    return false;
  }
  step.target = value.get<std::string>();
  return true;
}

// False when the key is unknown. Throws json::type_error for a value of the wrong type.
bool set_field(Step& step, const std::string& key, const json& value) {
  if (key == "body")
    step.body = value;
  else if (key == "raw")
    step.raw = value.get<std::string>();
  else if (key == "type")
    step.content_type = meaning(kContentTypes, value.get<std::string>());
  else if (key == "accept")
    step.accept = meaning(kForms, value.get<std::string>());
  else if (key == "no_manager")
    step.add_field_manager = !value.get<bool>();
  else if (key == "repeat")
    step.repeat = value.get<int>();
  else if (key == "eventually")
    step.eventually = value.get<bool>();
  else if (key == "as")
    step.as = value.get<std::string>();
  else if (key == "count")
    step.count = value.get<std::size_t>();
  else if (key == "until")
    step.until = value.get<std::string>();
  else if (key == "types")
    step.types = strings(value);
  else if (key == "status")
    step.status = value.is_array() ? value.get<std::vector<int>>() : std::vector<int>{value.get<int>()};
  else if (key == "reason")
    step.reason = value.get<std::string>();
  else if (key == "expect")
    for (const auto& [path, wanted] : value.items()) step.expect.emplace_back(path, wanted);
  else if (key == "capture")
    for (const auto& [name, path] : value.items()) step.capture.emplace_back(name, path.get<std::string>());
  else if (key == "only")
    step.only = strings(value);
  else if (key == "ignore")
    step.ignore = strings(value);
  else
    return key == "because";
  return true;
}

// What a step needs to mean anything, or "".
std::string missing(const Step& step) {
  const bool sends = step.kind == Step::Kind::request || step.kind == Step::Kind::watch;
  if (step.target.empty()) return "needs one of GET, POST, PUT, PATCH, DELETE, WATCH, EVENTS, COMPACT";
  if (sends && step.status.empty()) return "needs the status that both servers must answer";
  if (step.kind == Step::Kind::watch && step.as.empty()) return "needs a name (as:) for the watch";
  if (step.kind == Step::Kind::events && step.types.empty()) return "needs the types of the events";
  if (step.kind == Step::Kind::events && (step.count == 0) == step.until.empty()) return "needs either count or until";
  return "";
}

k8s::Result<Step> read_step(const json& source, const std::string& root) {
  Step step;
  try {
    for (const auto& [key, value] : source.items()) {
      if (key == "file") {
        k8s::Result<json> body = read_yaml(root + "/" + value.get<std::string>());
        if (!body) return std::unexpected(body.error());
        step.body = *std::move(body);
      } else if (!set_action(step, key, value) && !set_field(step, key, value)) {
        return k8s::fail(k8s::Reason::invalid, fmt::format("has an unknown field {}", key));
      }
    }
  } catch (const json::exception& error) {
    return k8s::fail(k8s::Reason::invalid, error.what());
  }
  if (std::string what = missing(step); !what.empty()) return k8s::fail(k8s::Reason::invalid, std::move(what));
  return step;
}

k8s::Result<void> read_file(const std::filesystem::path& path, const std::string& root, std::vector<Sequence>& all) {
  k8s::Result<json> document = read_yaml(path.string());
  if (!document) return std::unexpected(document.error());
  if (!document->is_object() || !document->contains("sequences"))
    return k8s::fail(k8s::Reason::invalid, fmt::format("{} has no list `sequences`", path.string()));
  for (const json& source : (*document)["sequences"]) {
    Sequence sequence{.file = path.stem().string(), .name = source.value("name", ""), .steps = {}};
    for (const json& step_source : source.value("steps", json::array())) {
      k8s::Result<Step> step = read_step(step_source, root);
      if (!step) {
        return k8s::fail(k8s::Reason::invalid,
                         fmt::format("{}, sequence '{}': step {} {}", path.string(), sequence.name,
                                     sequence.steps.size() + 1, step.error().message));
      }
      sequence.steps.push_back(*std::move(step));
    }
    all.push_back(std::move(sequence));
  }
  return {};
}

}  // namespace

std::string Step::title() const {
  switch (kind) {
    case Kind::request:
      return fmt::format("{} {}", k8s::to_string(method), target);
    case Kind::watch:
      return "WATCH " + target;
    case Kind::events:
      return "EVENTS " + target;
    case Kind::forget_history:
      return "COMPACT " + target;
  }
  return target;
}

bool Sequence::forgets_history() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == Step::Kind::forget_history; });
}

k8s::Result<std::vector<Sequence>> load_sequences(const std::string& folder, const std::string& root) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  if (error) return k8s::fail(k8s::Reason::invalid, fmt::format("cannot read {}: {}", folder, error.message()));
  std::sort(files.begin(), files.end());
  std::vector<Sequence> all;
  for (const std::filesystem::path& file : files) {
    k8s::Result<void> read = read_file(file, root, all);
    if (!read) return std::unexpected(read.error());
  }
  return all;
}

}  // namespace gso::conformance
