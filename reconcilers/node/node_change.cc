// NodeChange and Deferral <-> JSON.
#include "reconcilers/node/node_change.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

using Json = nlohmann::json;
namespace dom = simdjson::dom;

namespace {

constexpr Transition kTransitions[] = {Transition::none,      Transition::plugin_only, Transition::reshare,
                                       Transition::enter_mps, Transition::change_mps,  Transition::leave_mps};
constexpr ChangeCause kCauses[] = {ChangeCause::none,   ChangeCause::edited,       ChangeCause::relabelled,
                                   ChangeCause::policy, ChangeCause::new_template, ChangeCause::joined};
constexpr Deferral::By kDeferredBy[] = {Deferral::By::idle_timeout, Deferral::By::person, Deferral::By::stop};

std::string_view to_string(Deferral::By by) {
  switch (by) {
    case Deferral::By::person:
      return "person";
    case Deferral::By::stop:
      return "stop";
    case Deferral::By::idle_timeout:
      break;
  }
  return "idleTimeout";
}

// A JSON object; nullopt if the text is none. Valid until the next call.
std::optional<dom::object> parse_object(std::string_view text) {
  static dom::parser parser;  // Its buffers are used again. Planners run on one thread.
  dom::object out;
  if (text.empty())
    return std::nullopt;  // The parser copies from the address of a text, and an empty one may have none.
  if (parser.parse(text.data(), text.size()).get(out) != simdjson::SUCCESS) return std::nullopt;
  return out;
}

// Reads fields of one object and keeps the first error. Nothing here throws: people can edit the text.
class Fields {
 public:
  explicit Fields(dom::object object) : object_(object) {}

  void text(const char* name, std::string& out) {
    if (const auto read = view(name)) out = *read;
  }
  void flag(const char* name, bool& out) {
    const auto field = find(name, false);
    if (field && field->get(out) != simdjson::SUCCESS) fail(fmt::format("{} must be true or false", name));
  }
  void time(const char* name, k8s::WallTime& out) {
    const auto stamp = view(name);
    if (!stamp) return;
    const auto read = k8s::parse_rfc3339(*stamp);
    if (!read) return fail(fmt::format("{} must be a time as in 2026-01-02T03:04:05Z", name));
    out = *read;
  }
  template <class Value, std::size_t N>
  void word(const char* name, const Value (&values)[N], Value& out) {
    const auto read = view(name);
    if (!read) return;
    for (const Value value : values) {
      if (to_string(value) == *read) {
        out = value;
        return;
      }
    }
    fail(fmt::format("{} has the unknown value \"{}\"", name, shown_value(*read)));
  }
  void texts(const char* name, std::vector<std::string>& out) {
    const auto field = find(name, false);
    if (!field) return;
    dom::array items;
    if (field->get(items) != simdjson::SUCCESS) return fail(fmt::format("{} must be a list of strings", name));
    for (const dom::element item : items) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) return fail(fmt::format("{} must be a list of strings", name));
      out.emplace_back(text);
    }
  }
  // nullopt where the field is absent, which is an error if it is required.
  std::optional<dom::element> find(const char* name, bool required) {
    dom::element out;
    if (object_.at_key(name).get(out) == simdjson::SUCCESS) return out;
    if (required) fail(fmt::format("{} is missing", name));
    return std::nullopt;
  }
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // A required string; nullopt after an error.
  std::optional<std::string_view> view(const char* name) {
    const auto field = find(name, true);
    std::string_view out;
    if (!field) return std::nullopt;
    if (field->get(out) == simdjson::SUCCESS) return out;
    fail(fmt::format("{} must be a string", name));
    return std::nullopt;
  }

  dom::object object_;
  std::string problem_;
};

void read_pods(Fields& fields, NodeChange& out) {
  const auto field = fields.find("pods", true);
  if (!field) return;
  dom::object pods;
  if (field->get(pods) != simdjson::SUCCESS) return fields.fail("pods must map components to lists of uids");
  for (const auto [name, listed] : pods) {
    const auto component = parse_component(name);
    if (!component) return fields.fail(fmt::format("pods has the unknown component \"{}\"", shown_value(name)));
    dom::array uids;
    if (listed.get(uids) != simdjson::SUCCESS) return fields.fail("pods must map components to lists of uids");
    auto& into = out.pods[*component];
    for (const dom::element item : uids) {
      std::string_view uid;
      if (item.get(uid) != simdjson::SUCCESS) return fields.fail("pods must map components to lists of uids");
      into.emplace(uid);
    }
  }
}

void read_failure(Fields& fields, NodeChange& out) {
  const auto field = fields.find("failed", false);
  if (!field) return;
  dom::object failed;
  if (field->get(failed) != simdjson::SUCCESS) return fields.fail("failed must be an object");
  NodeChange::Failure failure;
  Fields inner(failed);
  inner.text("why", failure.why);
  inner.text("retry", failure.retry);
  if (!inner.problem().empty()) return fields.fail("failed: " + inner.problem());
  out.failed = std::move(failure);
}

void read_touched(Fields& fields, NodeChange& out) {
  out.touched = Touched::unknown;
  if (!fields.find("touched", false)) return;
  bool touched = false;
  fields.flag("touched", touched);
  out.touched = touched ? Touched::yes : Touched::no;
}

void read_replaced(Fields& fields, NodeChange& out) {
  const auto field = fields.find("replaced", false);
  if (!field) return;
  dom::object replaced;
  if (field->get(replaced) != simdjson::SUCCESS) return fields.fail("replaced must be an object");
  out.replaced = simdjson::minify(replaced);
}

// The version of a JSON object of the operator; an error message if this release cannot read that version.
std::string version_problem(dom::object root, int known) {
  std::int64_t number = 0;
  if (root.at_key("v").get(number) != simdjson::SUCCESS) return "v must be a number";
  if (number == known) return {};
  return fmt::format("version {} was written by another release; this release reads version {}", number, known);
}

}  // namespace

std::string_view to_string(ChangeCause cause) {
  switch (cause) {
    case ChangeCause::none:
      return "none";
    case ChangeCause::edited:
      return "edited";
    case ChangeCause::relabelled:
      return "relabelled";
    case ChangeCause::policy:
      return "policy";
    case ChangeCause::new_template:
      return "template";
    case ChangeCause::joined:
      return "joined";
    case ChangeCause::ended:
      return "ended";
  }
  return "none";
}

bool was_sound(const NodeChange& change) {
  return change.served && change.from != change.to;
}

bool is_drift_repair(const NodeChange& change) {
  return change.cause == ChangeCause::none && change.from == change.to;
}

std::string profile_ref_of(const NodeChange& change) {
  return fmt::format("{}/{}", change.config_map.substr(change.config_map.find('/') + 1), change.key);
}

std::string print_change(const NodeChange& change) {
  Json out = Json::object();
  out["v"] = NodeChange::kVersion;
  out["policy"] = change.policy;
  out["configMap"] = change.config_map;
  out["key"] = change.key;
  out["product"] = change.product;
  out["from"] = change.from;
  out["to"] = change.to;
  out["kind"] = to_string(change.kind);
  out["cause"] = to_string(change.cause);
  out["begun"] = k8s::format_time(change.begun);
  out["listed"] = k8s::format_time(change.listed);
  out["served"] = change.served;
  Json& pods = out["pods"] = Json::object();
  for (const auto& [component, uids] : change.pods) pods[std::string(to_string(component))] = uids;
  if (change.self_loaded) out["selfLoaded"] = true;
  if (change.touched != Touched::unknown) out["touched"] = change.touched == Touched::yes;
  if (change.cordoned) out["cordoned"] = true;
  if (change.had_turn) out["hadTurn"] = true;
  if (!change.guards.empty()) out["guards"] = change.guards;
  if (change.failed) out["failed"] = {{"why", change.failed->why}, {"retry", change.failed->retry}};
  if (!change.replaced.empty()) out["replaced"] = Json::parse(change.replaced, nullptr, false);
  return dump(out);
}

namespace {

std::unexpected<k8s::Error> bad_change(std::string_view what) {
  return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kChangeAnnotation, what));
}

// `replaced` is not read itself: another text is parsed with the same parser.
k8s::Result<NodeChange> parse_outer_change(std::string_view text) {
  const auto root = parse_object(text);
  if (!root) return bad_change("must be a JSON object");
  if (std::string problem = version_problem(*root, NodeChange::kVersion); !problem.empty()) return bad_change(problem);
  NodeChange out;
  Fields fields(*root);
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
  read_touched(fields, out);
  fields.flag("cordoned", out.cordoned);
  fields.flag("hadTurn", out.had_turn);
  fields.texts("guards", out.guards);
  read_failure(fields, out);
  read_replaced(fields, out);
  if (!fields.problem().empty()) return bad_change(fields.problem());
  return out;
}

}  // namespace

k8s::Result<NodeChange> parse_change(std::string_view text) {
  k8s::Result<NodeChange> out = parse_outer_change(text);
  if (!out || out->replaced.empty()) return out;
  const k8s::Result<NodeChange> before = parse_outer_change(out->replaced);
  if (!before || !before->failed || !before->replaced.empty())
    return bad_change("replaced must be a change that has failed");
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
  if (change != nullptr && change->cordoned) return true;
  const MpsDaemonChangeOnNode daemon = mps_daemon_change_on(node);
  return daemon.change && daemon.change->cordoned;
}

std::string print_deferral(const Deferral& deferral) {
  Json out = {{"v", Deferral::kVersion},
              {"to", deferral.to},
              {"until", k8s::format_time(deferral.until)},
              {"by", to_string(deferral.by)}};
  if (!deferral.retry.empty()) out["retry"] = deferral.retry;
  if (deferral.evicts) out["evicts"] = true;
  return dump(out);
}

DeferralOnNode deferral_on(const Node& node) {
  const auto text = node.meta.annotations.get(kDeferredAnnotation);
  if (!text) return {};
  const auto bad = [](std::string_view what) {
    return DeferralOnNode{std::nullopt, fmt::format("annotation {}: {}", kDeferredAnnotation, what)};
  };
  const auto root = parse_object(*text);
  if (!root) return bad("must be a JSON object");
  if (const std::string problem = version_problem(*root, Deferral::kVersion); !problem.empty()) return bad(problem);
  Deferral out;
  Fields fields(*root);
  fields.text("to", out.to);
  fields.time("until", out.until);
  fields.word("by", kDeferredBy, out.by);
  if (fields.find("retry", false)) fields.text("retry", out.retry);
  fields.flag("evicts", out.evicts);
  if (!fields.problem().empty()) return bad(fields.problem());
  return {out, {}};
}

std::optional<Deferral> deferral_of(const Node& node) {
  return deferral_on(node).deferral;
}

bool carries_change(const Node& node) {
  return node.meta.labels.contains(kStateLabel) || node.meta.annotations.contains(kChangeAnnotation);
}

using OrderedJson = nlohmann::ordered_json;

std::string print_mps_daemon_change(const MpsDaemonChange& change) {
  OrderedJson out = {{"v", MpsDaemonChange::kVersion},
                     {"daemonSet", change.daemonset},
                     {"to", change.to},
                     {"begun", k8s::format_time(change.begun)}};
  if (change.cordoned) out["cordoned"] = true;
  if (change.deferred_until) out["deferredUntil"] = k8s::format_time(*change.deferred_until);
  if (change.failed) out["failed"] = true;
  if (!change.retry.empty()) out["retry"] = change.retry;
  return dump(out);
}

k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text) {
  const auto bad = [](std::string_view what) {
    return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kMpsDaemonChangeAnnotation, what));
  };
  const OrderedJson root = OrderedJson::parse(text, nullptr, false);
  if (!root.is_object()) return bad("must be a JSON object");
  if (number_at(root, "v") != MpsDaemonChange::kVersion) return bad("v must be 1");
  const auto begun = k8s::parse_rfc3339(text_at(root, "begun"));
  MpsDaemonChange out;
  out.daemonset = text_at(root, "daemonSet");
  out.to = text_at(root, "to");
  if (out.daemonset.empty() || out.to.empty() || !begun) return bad("daemonSet, to and begun (a time) must be set");
  out.begun = *begun;
  for (const char* flag : {"cordoned", "failed"}) {
    const OrderedJson* value = member_at(root, flag);
    if (value != nullptr && !value->is_boolean()) return bad(fmt::format("{} must be true or false", flag));
  }
  out.cordoned = flag_at(root, "cordoned");
  out.failed = flag_at(root, "failed");
  out.retry = text_at(root, "retry");
  out.deferred_until = k8s::parse_rfc3339(text_at(root, "deferredUntil"));
  if (member_at(root, "deferredUntil") != nullptr && !out.deferred_until) return bad("deferredUntil must be a time");
  return out;
}

MpsDaemonChangeOnNode mps_daemon_change_on(const Node& node) {
  const auto text = node.meta.annotations.get(kMpsDaemonChangeAnnotation);
  if (!text) return {};
  k8s::Result<MpsDaemonChange> parsed = parse_mps_daemon_change(*text);
  MpsDaemonChangeOnNode out;
  if (!parsed) {
    out.problem = parsed.error().message;
  } else if (parsed->deferred_until) {
    out.deferred = std::move(*parsed);
  } else {
    out.change = std::move(*parsed);
  }
  return out;
}

std::string describe(const MpsDaemonChangeOnNode& found) {
  if (!found.problem.empty()) {
    return fmt::format("{}. Remove it once the node needs no change: kubectl annotate node NODE {}-", found.problem,
                       kMpsDaemonChangeAnnotation);
  }
  if (!found.change) return {};
  return fmt::format("the standalone MPS daemon of DaemonSet {} is replaced on the node", found.change->daemonset);
}

}  // namespace gso
