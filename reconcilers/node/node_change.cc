// NodeChange and Deferral <-> JSON.
#include "reconcilers/node/node_change.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {

using Json = nlohmann::json;
namespace dom = simdjson::dom;

namespace {

// Without `ended`, for which no change begins.
constexpr PolicyWord<ChangeCause> kCauseWords[] = {
    {"none", ChangeCause::none},     {"edited", ChangeCause::edited},         {"relabelled", ChangeCause::relabelled},
    {"policy", ChangeCause::policy}, {"template", ChangeCause::new_template}, {"joined", ChangeCause::joined}};
constexpr PolicyWord<Deferral::By> kDeferredByWords[] = {
    {"idleTimeout", Deferral::By::idle_timeout}, {"person", Deferral::By::person}, {"stop", Deferral::By::stop}};

// --- The fields of the annotations.

using stored::field;
using stored::Field;
using stored::When;
using stored::Wrong;

// By component, a list of uids.
constexpr Field<NodeChange> pods_field() {
  return {"pods", When::needed,
          [](dom::element value, NodeChange& change) -> Wrong {
            std::map<std::string, std::set<std::string>> pods;
            if (!stored::Stored<decltype(pods)>::read(value, pods).empty())
              return " must map components to lists of uids";
            for (const auto& [name, uids] : pods) {
              const auto component = parse_component(name);
              if (!component) return fmt::format(" has the unknown component \"{}\"", shown_value(name));
              change.pods[*component] = {uids.begin(), uids.end()};
            }
            return {};
          },
          [](const NodeChange& change) {
            Json out = Json::object();
            for (const auto& [component, uids] : change.pods)
              out[std::string(to_string(component))] = std::set<std::string>(uids.begin(), uids.end());
            return std::optional(std::move(out));
          }};
}

constexpr Field<NodeChange> touched_field() {
  return {"touched", When::if_set,
          [](dom::element value, NodeChange& change) -> Wrong {
            bool touched = false;
            Wrong wrong = stored::Stored<bool>::read(value, touched);
            change.touched = touched ? Touched::yes : Touched::no;
            return wrong;
          },
          [](const NodeChange& change) {
            return change.touched == Touched::unknown ? std::nullopt
                                                      : std::optional<Json>(change.touched == Touched::yes);
          }};
}

}  // namespace

// Not in the anonymous namespace, because a specialization of Stored<> has it as an argument.
inline constexpr stored::Field<ChangeFailure> kFailureFields[] = {
    field<ChangeFailure, &ChangeFailure::why>("why", When::needed),
    field<ChangeFailure, &ChangeFailure::retry>("retry", When::needed)};

template <>
struct stored::Stored<ChangeFailure> : stored::EntryOf<ChangeFailure, kFailureFields> {};

namespace {

constexpr Field<NodeChange> kChangeFields[] = {
    field<NodeChange, &NodeChange::policy>("policy", When::needed),
    field<NodeChange, &NodeChange::config_map>("configMap", When::needed),
    field<NodeChange, &NodeChange::key>("key", When::needed),
    field<NodeChange, &NodeChange::product>("product", When::needed),
    field<NodeChange, &NodeChange::from>("from", When::needed),
    field<NodeChange, &NodeChange::to>("to", When::needed),
    stored::word_field<NodeChange, &NodeChange::kind, kTransitionWords>("kind"),
    stored::word_field<NodeChange, &NodeChange::cause, kCauseWords>("cause"),
    field<NodeChange, &NodeChange::begun>("begun", When::needed),
    field<NodeChange, &NodeChange::listed>("listed", When::needed),
    pods_field(),
    field<NodeChange, &NodeChange::served>("served"),
    field<NodeChange, &NodeChange::self_loaded>("selfLoaded", When::if_set),
    touched_field(),
    field<NodeChange, &NodeChange::cordoned>("cordoned", When::if_set),
    field<NodeChange, &NodeChange::had_turn>("hadTurn", When::if_set),
    field<NodeChange, &NodeChange::guards>("guards", When::if_set),
    field<NodeChange, &NodeChange::failed>("failed", When::if_set),
    stored::object_field<NodeChange, &NodeChange::replaced>("replaced", When::if_set)};

constexpr Field<Deferral> kDeferralFields[] = {field<Deferral, &Deferral::to>("to", When::needed),
                                               field<Deferral, &Deferral::until>("until", When::needed),
                                               stored::word_field<Deferral, &Deferral::by, kDeferredByWords>("by"),
                                               field<Deferral, &Deferral::retry>("retry", When::if_set),
                                               field<Deferral, &Deferral::evicts>("evicts", When::if_set)};

// `out`: with what an absent field means.
template <class Entry>
k8s::Result<Entry> read_annotation(std::string_view text, std::span<const Field<Entry>> fields,
                                   std::string_view annotation, Entry out = {}) {
  const std::string problem = stored::read_versioned(text, fields, out);
  if (problem.empty()) return out;
  return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", annotation, problem));
}

}  // namespace

std::string_view to_string(ChangeCause cause) {
  return cause == ChangeCause::ended ? "ended" : word_of(kCauseWords, cause);
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
  return stored::print_versioned<NodeChange>(change, kChangeFields);
}

k8s::Result<NodeChange> parse_change(std::string_view text) {
  // What an earlier release wrote does not say it.
  const auto read = [](std::string_view change) {
    NodeChange out;
    out.touched = Touched::unknown;
    return read_annotation<NodeChange>(change, kChangeFields, kChangeAnnotation, std::move(out));
  };
  k8s::Result<NodeChange> out = read(text);
  if (!out || out->replaced.empty()) return out;
  const k8s::Result<NodeChange> before = read(out->replaced);
  if (before && before->failed && before->replaced.empty()) return out;
  return k8s::fail(k8s::Reason::decode,
                   fmt::format("annotation {}: replaced must be a change that has failed", kChangeAnnotation));
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
  return stored::print_versioned<Deferral>(deferral, kDeferralFields);
}

DeferralOnNode deferral_on(const Node& node) {
  const auto text = node.meta.annotations.get(kDeferredAnnotation);
  if (!text) return {};
  auto read = read_annotation<Deferral>(*text, kDeferralFields, kDeferredAnnotation);
  return read ? DeferralOnNode{*std::move(read), {}} : DeferralOnNode{std::nullopt, read.error().message};
}

std::optional<Deferral> deferral_of(const Node& node) {
  return deferral_on(node).deferral;
}

namespace {

constexpr Field<MpsDaemonChange> kDaemonFields[] = {
    field<MpsDaemonChange, &MpsDaemonChange::daemonset>("daemonSet", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::to>("to", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::begun>("begun", When::needed),
    field<MpsDaemonChange, &MpsDaemonChange::cordoned>("cordoned", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::deferred_until>("deferredUntil", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::failed>("failed", When::if_set),
    field<MpsDaemonChange, &MpsDaemonChange::retry>("retry", When::if_set)};

}  // namespace

std::string print_mps_daemon_change(const MpsDaemonChange& change) {
  return stored::print_versioned<MpsDaemonChange, nlohmann::ordered_json>(change, kDaemonFields);
}

k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text) {
  MpsDaemonChange out;
  std::string problem = stored::read_versioned<MpsDaemonChange>(text, kDaemonFields, out);
  if (problem.empty() && (out.daemonset.empty() || out.to.empty())) problem = "daemonSet and to must be set";
  if (problem.empty()) return out;
  return k8s::fail(k8s::Reason::decode, fmt::format("annotation {}: {}", kMpsDaemonChangeAnnotation, problem));
}

MpsDaemonChangeOnNode mps_daemon_change_on(const Node& node) {
  const auto text = node.meta.annotations.get(kMpsDaemonChangeAnnotation);
  if (!text) return {};
  k8s::Result<MpsDaemonChange> parsed = parse_mps_daemon_change(*text);
  MpsDaemonChangeOnNode out;
  if (!parsed)
    out.problem = parsed.error().message;
  else if (parsed->deferred_until)
    out.deferred = std::move(*parsed);
  else
    out.change = std::move(*parsed);
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
