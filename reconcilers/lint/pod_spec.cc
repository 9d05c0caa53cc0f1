// The spec of a Pod, or of a template of pods, as far as people write it: containers, restartPolicy, volumes, what
// selects nodes. Source: kubernetes/kubernetes, pkg/apis/core/validation (ValidatePodSpec). What is not here is
// admitted.
#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/cluster/manifest_object.h"
#include "reconcilers/lint/crd_patterns.h"
#include "reconcilers/lint/field_check.h"
#include "reconcilers/lint/object_rules.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr auto kSpecFields = std::to_array<std::string_view>(
    {"containers", "initContainers", "nodeSelector", "restartPolicy", "schedulerName", "runtimeClassName", "hostIPC",
     "hostPID", "hostNetwork", "tolerations", "volumes", "affinity", "serviceAccountName", "securityContext",
     "priorityClassName", "imagePullSecrets", "terminationGracePeriodSeconds", "resourceClaims"});
constexpr auto kContainerFields = std::to_array<std::string_view>(
    {"name", "image", "command", "args", "env", "envFrom", "resources", "volumeMounts", "ports", "securityContext",
     "imagePullPolicy", "workingDir", "livenessProbe", "readinessProbe", "startupProbe", "restartPolicy"});
constexpr auto kResourceFields = std::to_array<std::string_view>({"limits", "requests", "claims"});

constexpr std::array<std::string_view, 3> kPullPolicies{"Always", "IfNotPresent", "Never"};
constexpr std::array<std::string_view, 4> kDnsPolicies{"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"};
constexpr std::array<std::string_view, 3> kEffects{"NoSchedule", "PreferNoSchedule", "NoExecute"};
constexpr std::array<std::string_view, 4> kTolerationOperators{"Equal", "Exists", "Lt", "Gt"};
constexpr std::int64_t kMostUser = 2'147'483'647;
constexpr std::int64_t kMostPort = 65'535;

// Absent, null, or the empty text: the API server fills its default in.
bool is_absent(const DocumentValue* value) {
  return value == nullptr || value->is_null() || (value->is_string() && value->text.empty());
}

class PodSpecCheck : private FieldCheck {
 public:
  PodSpecCheck(const ObjectRules& rules, std::string path, std::vector<Diagnostic>& found)
      : FieldCheck(found), rules_(rules) {
    path_ = std::move(path);
  }

  // `claims`: the volumeClaimTemplates of a StatefulSet, which are volumes of its pods; null: none.
  void run(const DocumentValue& pod, const DocumentValue* claims) {
    const DocumentValue* spec = pod.find("spec");
    const PathStep step(path_, "spec");
    if (spec == nullptr || !spec->is_object()) {
      return error("ContainersMissing", spec == nullptr ? pod.at : spec->at,
                   "the API server refuses a pod without a spec that lists containers");
    }
    check_case_of_fields(*spec, kSpecFields, path_, diagnostics_);
    volumes(*spec, claims);
    all_containers(*spec);
    restart_policy(*spec);
    choice(*spec, "dnsPolicy", kDnsPolicies);
    for (const std::string_view field : {"hostIPC", "hostPID", "hostNetwork"}) boolean(*spec, field);
    for (const std::string_view field : {"serviceAccountName", "runtimeClassName", "priorityClassName"}) {
      object_name(*spec, field);
    }
    object(*spec, "nodeSelector", [this](const DocumentValue& v) { node_selector(v); });
    list(*spec, "tolerations", [this](const DocumentValue& v) { toleration(v); });
    object(*spec, "securityContext", [this](const DocumentValue& v) { user(v); });
  }

 private:
  // Visits the items of a list; null is an object without fields.
  template <class Visit>
  void list(const DocumentValue& parent, std::string_view name, Visit visit) {
    member(parent, name, [&](const DocumentValue& value) {
      if (!value.is_array()) return error("WrongType", value.at, "expected a list, found " + found_there(value));
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const PathStep step(path_, i);
        const DocumentValue& item = value.items[i];
        if (item.is_object() || item.is_null()) {
          visit(item);
        } else {
          error("WrongType", item.at, "expected a mapping, found " + found_there(item));
        }
      }
    });
  }

  bool is_text(const DocumentValue& value) {
    if (value.is_string() || value.is_null()) return true;
    const bool quotable = value.kind == DocumentValue::Kind::number || value.kind == DocumentValue::Kind::boolean;
    error("WrongType", value.at,
          fmt::format("expected a string, found {}{}", found_there(value), quotable ? "; put it in quotes" : ""));
    return false;
  }

  void text(const DocumentValue& parent, std::string_view name) {
    member(parent, name, [this](const DocumentValue& value) { (void)is_text(value); });
  }

  void texts(const DocumentValue& parent, std::string_view name) {
    member(parent, name, [this](const DocumentValue& value) {
      if (!value.is_array()) {
        return error("WrongType", value.at, fmt::format("expected a list of strings, found {}", found_there(value)));
      }
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const PathStep step(path_, i);
        (void)is_text(value.items[i]);
      }
    });
  }

  void choice(const DocumentValue& parent, std::string_view name, Words words) {
    if (!is_absent(parent.find(name))) word(parent, name, words);
  }

  void object_name(const DocumentValue& parent, std::string_view name) {
    const DocumentValue* value = parent.find(name);
    if (is_absent(value)) return;
    const PathStep step(path_, name);
    if (!is_text(*value) || is_object_name(value->text)) return;
    error("NameInvalid", value->at,
          fmt::format("\"{}\" is no name of an object: lower-case letters, digits, '-' and '.'",
                      shown_value(value->text)));
  }

  // Of a container or volume. `others`: the names of its kind so far.
  void own_name(const DocumentValue& parent, std::string_view what, std::set<std::string_view>& others) {
    const DocumentValue* name = parent.find("name");
    const PathStep step(path_, "name");
    if (is_absent(name)) {
      error("NameMissing", name == nullptr ? parent.at : name->at,
            fmt::format("the API server refuses a pod with a {} that has no name; write one", what));
    } else if (!is_text(*name)) {
      return;
    } else if (!is_dns_label(name->text)) {
      error(
          "NameInvalid", name->at,
          fmt::format("\"{}\" is no name of a {}: at most 63 lower-case letters, digits and '-', beginning and ending "
                      "with a letter or digit",
                      shown_value(name->text), what));
    } else if (!others.insert(name->text).second) {
      error("NameTwice", name->at,
            fmt::format("another {} of the pod is called \"{}\", and the API server wants each name once", what,
                        shown_value(name->text)));
    }
  }

  void volumes(const DocumentValue& spec, const DocumentValue* claims) {
    std::set<std::string_view> names;
    list(spec, "volumes", [&](const DocumentValue& volume) { own_name(volume, "volume", names); });
    mountable_ = std::move(names);
    for (std::size_t i = 0; claims != nullptr && i < claims->items.size(); ++i) {
      const DocumentValue* metadata = claims->items[i].find("metadata");
      if (metadata != nullptr) mountable_.insert(metadata->string_at("name"));
    }
  }

  static std::string instead_of_containers(const DocumentValue& spec) {
    static constexpr std::array<std::string_view, 1> kMeant{"containers"};
    for (const DocumentMember& member : spec.members) {
      const bool known = std::ranges::find(kSpecFields, member.key) != kSpecFields.end();
      if (!known && !nearest_word(member.key, kMeant).empty())
        return fmt::format("did you mean \"containers\" instead of \"{}\"?", shown_value(member.key));
    }
    return "list at least one";
  }

  void all_containers(const DocumentValue& spec) {
    const DocumentValue* listed = spec.find("containers");
    if (listed == nullptr || listed->is_null() || (listed->is_array() && listed->items.empty())) {
      const PathStep step(path_, "containers");
      error("ContainersMissing", listed == nullptr ? spec.at : listed->at,
            fmt::format("the API server refuses a pod without containers; {}", instead_of_containers(spec)));
    }
    std::set<std::string_view> names;
    for (const std::string_view field : {"containers", "initContainers"}) {
      list(spec, field, [&](const DocumentValue& each) { container(each, names); });
    }
  }

  void container(const DocumentValue& container, std::set<std::string_view>& names) {
    check_case_of_fields(container, kContainerFields, path_, diagnostics_);
    own_name(container, "container", names);
    image(container);
    texts(container, "command");
    texts(container, "args");
    choice(container, "imagePullPolicy", kPullPolicies);
    choice(container, "restartPolicy", kAnyPolicy);
    list(container, "env", [this](const DocumentValue& v) { variable(v); });
    list(container, "ports", [this](const DocumentValue& v) { port(v); });
    std::set<std::string_view> paths;
    list(container, "volumeMounts", [&](const DocumentValue& v) { mount(v, paths); });
    object(container, "securityContext", [this](const DocumentValue& v) { user(v); });
    object(container, "resources", [this](const DocumentValue& v) {
      check_case_of_fields(v, kResourceFields, path_, diagnostics_);
      resource_fields(v);
      for (const std::string_view field : {"limits", "requests"}) object(v, field, [](const DocumentValue&) {});
    });
  }

  // A misspelt list of resources is dropped: the container gets none of them.
  void resource_fields(const DocumentValue& resources) {
    for (const DocumentMember& member : resources.members) {
      const bool known = std::ranges::any_of(
          kResourceFields, [&](std::string_view field) { return within_edits(member.key, field, 0, ""); });
      if (known) continue;  // Or in another case, which is reported.
      const std::string_view near = nearest_word(member.key, kResourceFields);
      diagnostics_.push_back({Severity::warning, "UnknownField", fmt::format("{}.{}", path_, member.key),
                              member.key_at.line, member.key_at.column,
                              near.empty()
                                  ? "the API server knows no such field; resources belong under limits"
                                  : fmt::format("the API server knows no such field; did you mean \"{}\"?", near)});
    }
  }

  void image(const DocumentValue& container) {
    const DocumentValue* image = container.find("image");
    const PathStep step(path_, "image");
    if (is_absent(image)) {
      error("ImageMissing", image == nullptr ? container.at : image->at,
            "the API server refuses a pod with a container that has no image; write one");
    } else {
      (void)is_text(*image);
    }
  }

  void variable(const DocumentValue& variable) {
    const DocumentValue* name = variable.find("name");
    if (is_absent(name)) {
      const PathStep step(path_, "name");
      error("NameMissing", name == nullptr ? variable.at : name->at,
            "the API server refuses a pod with a variable that has no name; write one");
    } else {
      text(variable, "name");
    }
    text(variable, "value");
    thread_percentage(variable);
  }

  void thread_percentage(const DocumentValue& variable) {
    constexpr std::string_view kVariable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
    const DocumentValue* value = variable.find("value");
    if (variable.string_at("name") != kVariable || is_absent(value) || !value->is_string()) return;
    if (value->text.contains("$(")) return;  // The kubelet inserts another variable.
    double percent = -1;
    const char* const end = value->text.data() + value->text.size();
    const auto read = std::from_chars(value->text.data(), end, percent);
    if (read.ec == std::errc() && read.ptr == end && percent >= 0 && percent <= 100) return;
    const PathStep step(path_, "value");
    diagnostics_.push_back({Severity::warning, "ThreadPercentageInvalid", path_, value->at.line, value->at.column,
                            fmt::format("\"{}\" is no percentage from 0 to 100, which CUDA expects in {}",
                                        shown_value(value->text), kVariable)});
  }

  void port(const DocumentValue& port) {
    const DocumentValue* number = port.find("containerPort");
    if (number == nullptr || number->is_null()) {
      error("OutOfRange", port.at,
            fmt::format("the API server refuses a port without containerPort: write a number from 1 to {}", kMostPort));
    } else {
      integer(port, "containerPort", 1, kMostPort);
    }
  }

  void mount(const DocumentValue& mount, std::set<std::string_view>& paths) {
    const DocumentValue* name = mount.find("name");
    const DocumentValue* where = mount.find("mountPath");
    if (is_absent(name) || is_absent(where)) {
      error("NameMissing", mount.at, "the API server refuses a volumeMount without name and mountPath; write both");
      return;
    }
    text(mount, "name");
    text(mount, "mountPath");
    if (name->is_string() && !mountable_.contains(name->text)) {
      const PathStep step(path_, "name");
      error("VolumeNotFound", name->at,
            fmt::format("the pod has no volume \"{}\", and the API server refuses the mount; add it under volumes",
                        shown_value(name->text)));
    }
    if (where->is_string() && !paths.insert(where->text).second) {
      const PathStep step(path_, "mountPath");
      error("NameTwice", where->at,
            fmt::format("another volume is mounted at \"{}\" as well, and the API server wants each path once",
                        shown_value(where->text)));
    }
  }

  void user(const DocumentValue& context) { integer(context, "runAsUser", 0, kMostUser); }

  void restart_policy(const DocumentValue& spec) {
    const DocumentValue* policy = spec.find("restartPolicy");
    const Words allowed = rules_.restart_policy;
    const bool absent = is_absent(policy);
    const PathStep step(path_, "restartPolicy");
    if (absent && std::ranges::find(allowed, "Always") == allowed.end()) {
      error("RestartPolicyWrong", policy == nullptr ? spec.at : policy->at,
            fmt::format("the pods of a {} need restartPolicy: {}; without it they have Always, which the API server "
                        "refuses there",
                        rules_.kind, fmt::join(allowed, " or ")));
    }
    if (absent || (policy->is_string() && std::ranges::find(allowed, policy->text) != allowed.end())) return;
    const auto near = nearest_word(policy->text, allowed);
    error("RestartPolicyWrong", policy->at,
          fmt::format("the API server refuses restartPolicy {} of {} {}; {}",
                      policy->is_string() ? shown_value(policy->text) : found_there(*policy),
                      rules_.pods_at.empty() ? "a" : "the pods of a", rules_.kind,
                      near.empty() ? fmt::format("write {}", fmt::join(allowed, " or "))
                                   : fmt::format("did you mean {}?", near)));
  }

  void node_selector(const DocumentValue& selector) {
    for (const DocumentMember& label : selector.members) {
      const bool key = k8s::label_key_problem(label.key).has_value();
      if (!key && !(label.value.is_string() && k8s::label_value_problem(label.value.text))) continue;
      const std::string before = std::exchange(path_, fmt::format("{}[{}]", path_, label.key));
      error("SelectorInvalid", key ? label.key_at : label.value.at,
            fmt::format("\"{}\" is no {} of a label, and the API server refuses it",
                        shown_value(key ? label.key : label.value.text), key ? "name" : "value"));
      path_ = before;
    }
  }

  void toleration(const DocumentValue& toleration) {
    choice(toleration, "operator", kTolerationOperators);
    choice(toleration, "effect", kEffects);
    text(toleration, "key");
    text(toleration, "value");
    const std::string_view op = toleration.string_at("operator");
    const std::string_view value = toleration.string_at("value");
    if (op != "Exists" && k8s::label_value_problem(value)) {
      error("TolerationInvalid", toleration.find("value")->at,
            fmt::format("\"{}\" is no value of a taint", shown_value(value)));
    }
    if (op == "Exists" && !value.empty()) {
      error("TolerationInvalid", toleration.at, "operator Exists compares no value: leave value out");
    } else if (op != "Exists" && is_absent(toleration.find("key"))) {
      error("TolerationInvalid", toleration.at, "a toleration without key needs operator: Exists");
    }
    const DocumentValue* key = toleration.find("key");
    if (key != nullptr && key->is_string() && !key->text.empty() && k8s::label_key_problem(key->text)) {
      error("TolerationInvalid", key->at, fmt::format("\"{}\" is no key of a taint", shown_value(key->text)));
    }
    const DocumentValue* seconds = toleration.find("tolerationSeconds");
    if (seconds != nullptr && !seconds->is_null() && toleration.string_at("effect") != "NoExecute") {
      error("TolerationInvalid", seconds->at, "tolerationSeconds needs effect: NoExecute");
    }
  }

  static constexpr std::array<std::string_view, 3> kAnyPolicy{"Always", "OnFailure", "Never"};

  const ObjectRules& rules_;
  std::set<std::string_view> mountable_;  // Volumes.
};

}  // namespace

void check_pod_spec(const DocumentValue& pod, std::string path, const ObjectRules& rules,
                    const DocumentValue* claim_templates, std::vector<Diagnostic>& diagnostics) {
  std::vector<Diagnostic> found;
  PodSpecCheck(rules, std::move(path), found).run(pod, claim_templates);
  // What the checks of the pod itself have reported already.
  std::set<std::string> said;
  for (const Diagnostic& d : diagnostics) {
    if (d.severity == Severity::error) said.insert(d.path);
  }
  for (Diagnostic& d : found) {
    if (said.contains(d.path)) continue;
    diagnostics.push_back(std::move(d));
  }
}

}  // namespace gso
