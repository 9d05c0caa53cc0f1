// NodeChange and Deferral <-> JSON.
#include "reconcilers/node/node_change.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr Transition kTransitions[] = {Transition::none,      Transition::plugin_only, Transition::reshare,
                                       Transition::enter_mps, Transition::change_mps,  Transition::leave_mps};
constexpr ChangeCause kCauses[] = {ChangeCause::none,    ChangeCause::edited,    ChangeCause::moved,
                                   ChangeCause::relabel, ChangeCause::on_delete, ChangeCause::joined};
constexpr Deferral::By kDeferredBy[] = {Deferral::By::idle_timeout, Deferral::By::person};

std::string_view to_string(Deferral::By by) {
  return by == Deferral::By::person ? "person" : "idleTimeout";
}

// Reads fields of one object and keeps the first error. Nothing here throws: people can edit the text.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  void text(const char* name, std::string& out) {
    const Json* field = find(name, true);
    if (field == nullptr) return;
    if (!field->is_string()) return fail(fmt::format("{} must be a string", name));
    out = field->get_ref<const std::string&>();
  }
  void flag(const char* name, bool& out) {
    const Json* field = find(name, false);
    if (field == nullptr) return;
    if (!field->is_boolean()) return fail(fmt::format("{} must be true or false", name));
    out = *field == true;
  }
  void time(const char* name, k8s::WallTime& out) {
    std::string stamp;
    text(name, stamp);
    if (!problem_.empty()) return;
    const auto read = k8s::parse_rfc3339(stamp);
    if (!read) return fail(fmt::format("{} must be a time as in 2026-01-02T03:04:05Z", name));
    out = *read;
  }
  template <class Value, std::size_t N>
  void word(const char* name, const Value (&values)[N], Value& out) {
    std::string read;
    text(name, read);
    if (!problem_.empty()) return;
    for (const Value value : values) {
      if (to_string(value) == read) {
        out = value;
        return;
      }
    }
    fail(fmt::format("{} has the unknown value \"{}\"", name, read.substr(0, 64)));
  }
  void texts(const char* name, std::vector<std::string>& out) {
    const Json* field = find(name, false);
    if (field == nullptr) return;
    if (!field->is_array()) return fail(fmt::format("{} must be a list of strings", name));
    for (const Json& item : *field) {
      if (!item.is_string()) return fail(fmt::format("{} must be a list of strings", name));
      out.push_back(item.get_ref<const std::string&>());
    }
  }
  // Null where an optional field is absent.
  const Json* find(const char* name, bool required) {
    const auto at = object_.find(name);
    if (at != object_.end()) return &*at;
    if (required) fail(fmt::format("{} is missing", name));
    return nullptr;
  }
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const Json& object_;
  std::string problem_;
};

void read_pods(Fields& fields, NodeChange& out) {
  const Json* pods = fields.find("pods", true);
  if (pods == nullptr) return;
  if (!pods->is_object()) return fields.fail("pods must map components to lists of uids");
  for (const auto& [name, uids] : pods->items()) {
    const auto component = parse_component(name);
    if (!component) return fields.fail(fmt::format("pods has the unknown component \"{}\"", name.substr(0, 64)));
    if (!uids.is_array()) return fields.fail("pods must map components to lists of uids");
    auto& into = out.pods[*component];
    for (const Json& uid : uids) {
      if (!uid.is_string()) return fields.fail("pods must map components to lists of uids");
      into.insert(uid.get_ref<const std::string&>());
    }
  }
}

void read_failure(Fields& fields, NodeChange& out) {
  const Json* failed = fields.find("failed", false);
  if (failed == nullptr) return;
  if (!failed->is_object()) return fields.fail("failed must be an object");
  NodeChange::Failure failure;
  Fields inner(*failed);
  inner.text("why", failure.why);
  inner.text("retry", failure.retry);
  if (!inner.problem().empty()) return fields.fail("failed: " + inner.problem());
  out.failed = std::move(failure);
}

// The version of a JSON object of the operator; an error message if this release cannot read that version.
std::string version_problem(const Json& root, int known) {
  const auto version = root.find("v");
  if (version == root.end() || !version->is_number_integer()) return "v must be a number";
  const auto number = version->get<std::int64_t>();
  if (number == known) return {};
  return fmt::format("version {} was written by another release; this release reads version {}", number, known);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view to_string(ChangeCause cause) {
  switch (cause) {
    case ChangeCause::none:
      return "none";
    case ChangeCause::edited:
      return "edited";
    case ChangeCause::moved:
      return "moved";
    case ChangeCause::relabel:
      return "relabel";
    case ChangeCause::on_delete:
      return "on-delete";
    case ChangeCause::joined:
      return "joined";
  }
  return "none";
}

std::string print_change(const NodeChange& change) {
  Json pods = Json::object();
  for (const auto& [component, uids] : change.pods) pods[std::string(to_string(component))] = uids;
  Json out = {{"v", NodeChange::kVersion},
              {"policy", change.policy},
              {"configMap", change.config_map},
              {"key", change.key},
              {"product", change.product},
              {"from", change.from},
              {"to", change.to},
              {"kind", to_string(change.kind)},
              {"cause", to_string(change.cause)},
              {"begun", k8s::format_time(change.begun)},
              {"listed", k8s::format_time(change.listed)},
              {"pods", std::move(pods)},
              {"served", change.served}};
  if (change.self_loaded) out["selfLoaded"] = true;
  if (change.touched) out["touched"] = true;
  if (change.cordoned) out["cordoned"] = true;
  if (!change.guards.empty()) out["guards"] = change.guards;
  if (change.failed) out["failed"] = {{"why", change.failed->why}, {"retry", change.failed->retry}};
  return dump(out);
}

k8s::Result<NodeChange> parse_change(std::string_view text) {
  const auto bad = [](std::string_view what) {
    return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kChangeAnnotation, what));
  };
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return bad("must be a JSON object");
  if (std::string problem = version_problem(root, NodeChange::kVersion); !problem.empty()) return bad(problem);
  NodeChange out;
  Fields fields(root);
  fields.text("policy", out.policy);
  fields.text("configMap", out.config_map);
  fields.text("key", out.key);
  fields.text("product", out.product);
  fields.text("from", out.from);
  fields.text("to", out.to);
  fields.word("kind", kTransitions, out.kind);
  fields.word("cause", kCauses, out.cause);
  fields.time("begun", out.begun);
  fields.time("listed", out.listed);
  read_pods(fields, out);
  fields.flag("served", out.served);
  fields.flag("selfLoaded", out.self_loaded);
  fields.flag("touched", out.touched);
  fields.flag("cordoned", out.cordoned);
  fields.texts("guards", out.guards);
  read_failure(fields, out);
  if (!fields.problem().empty()) return bad(fields.problem());
  return out;
}

ChangeOnNode change_on(const Node& node) {
  const auto text = node.meta.annotations.get(kChangeAnnotation);
  if (!text) return {};
  k8s::Result<NodeChange> parsed = parse_change(*text);
  if (!parsed) return {nullptr, parsed.error().message};
  return {std::make_shared<const NodeChange>(std::move(*parsed)), {}};
}

std::shared_ptr<const NodeChange> change_of(const Node& node) {
  return change_on(node).change;
}

bool is_cordoned_by_operator(const Node& node) {
  const auto change = change_of(node);
  return change != nullptr && change->cordoned;
}

std::string print_deferral(const Deferral& deferral) {
  Json out = {{"v", Deferral::kVersion},
              {"to", deferral.to},
              {"until", k8s::format_time(deferral.until)},
              {"by", to_string(deferral.by)}};
  if (!deferral.retry.empty()) out["retry"] = deferral.retry;
  return dump(out);
}

DeferralOnNode deferral_on(const Node& node) {
  const auto text = node.meta.annotations.get(kDeferredAnnotation);
  if (!text) return {};
  const auto bad = [](std::string_view what) {
    return DeferralOnNode{std::nullopt, fmt::format("annotation {}: {}", kDeferredAnnotation, what)};
  };
  const Json root = Json::parse(*text, nullptr, false);
  if (!root.is_object()) return bad("must be a JSON object");
  if (const std::string problem = version_problem(root, Deferral::kVersion); !problem.empty()) return bad(problem);
  Deferral out;
  Fields fields(root);
  fields.text("to", out.to);
  fields.time("until", out.until);
  fields.word("by", kDeferredBy, out.by);
  if (root.contains("retry")) fields.text("retry", out.retry);
  if (!fields.problem().empty()) return bad(fields.problem());
  return {out, {}};
}

std::optional<Deferral> deferral_of(const Node& node) {
  return deferral_on(node).deferral;
}

bool carries_change(const Node& node) {
  return node.meta.labels.contains(kStateLabel) || node.meta.annotations.contains(kChangeAnnotation);
}

}  // namespace gso
