// Commands that change a pod. A pod that its controller creates is changed in the controller's template: a pod that is
// edited or replaced beside it is lost with the next one, and some controllers create a second one at once.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

// The containers of that list that request the resource, each as its part of the patch.
Json resource_patches(const Json& containers, const std::string& resource, std::int64_t most,
                      const std::string& instead_of) {
  Json out = Json::array();
  for (const Json& container : containers) {
    const Json resources = object_at(container, "resources");
    const Json limits = object_at(resources, "limits");
    const Json requests = object_at(resources, "requests");
    const bool limited = limits.is_object() && limits.contains(instead_of);
    const bool requested = requests.is_object() && requests.contains(instead_of);
    if (!limited && !requested) continue;
    const std::int64_t asked = amount_at(limited ? limits : requests, instead_of).value_or(most);
    Json patch{{"limits", {{resource, std::to_string(std::min(asked, most))}}}};
    if (resource != instead_of) patch["limits"][instead_of] = nullptr;
    // Requests of an extended resource must equal its limits; without any the API server copies them.
    if (requested) patch["requests"][instead_of] = nullptr;
    out.push_back({{"name", text_at(container, "name")}, {"resources", std::move(patch)}});
  }
  return out;
}

}  // namespace

std::string describe_pod(const AskedPod& asked) {
  return fmt::format("kubectl describe pod {} {}", asked.pod.meta.name, asked.in_namespace());
}

std::string show_template(const AskedPod& asked) {
  const AskedPod::Workload owner = asked.workload();
  return owner.kind.empty()
             ? fmt::format("kubectl get pod {} {} --output yaml", asked.pod.meta.name, asked.in_namespace())
             : fmt::format("kubectl get {} {} {} --output yaml", owner.resource, owner.name, asked.in_namespace());
}

Cure change_template(const AskedPod& asked, const std::string& what, const Json& patch) {
  const AskedPod::Workload owner = asked.workload();
  if (owner.changeable) {
    const Json whole{{"spec", {{"template", {{"spec", patch}}}}}};
    return {fmt::format("kubectl patch {} {} {} --patch {}", owner.resource, owner.name, asked.in_namespace(),
                        shell_word(dump(whole))),
            {}};
  }
  if (owner.kind.empty()) {
    return {show_template(asked),
            {fmt::format("{}: nothing creates this pod anew: whoever created it deletes it, makes this change in its "
                         "manifest, and creates it again",
                         what)}};
  }
  if (owner.kind == "Job") {
    return {
        show_template(asked),
        {fmt::format("{} in the template of Job {}, which Kubernetes does not let you change: its owner deletes the "
                     "Job and creates it anew",
                     what, owner.name)}};
  }
  return {show_template(asked), {fmt::format("{} where {} {} defines its pods", what, owner.kind, owner.name)}};
}

Cure ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count, const std::string& instead_of) {
  const std::string text = std::to_string(count);
  const Json spec = object_at<Json>(asked.object, "spec");
  Json patch = Json::object();
  for (const char* list : {"containers", "initContainers"}) {
    Json containers = resource_patches(list_at(spec, list), resource, count, instead_of);
    if (!containers.empty()) patch[list] = std::move(containers);
  }
  return change_template(asked, fmt::format("request {} of {}", text, resource), patch);
}

Cure schedule_by(const AskedPod& asked, std::string_view scheduler) {
  return change_template(asked, fmt::format("set schedulerName to {}", scheduler), {{"schedulerName", scheduler}});
}

Cure tolerate(const AskedPod& asked, const Taint& taint) {
  // The patch replaces the list as a whole: its present entries are kept, except those that the API server adds to
  // every pod.
  Json list = Json::array();
  const Json spec = object_at<Json>(asked.object, "spec");
  for (const Json& present : list_at(spec, "tolerations")) {
    if (!text_at(present, "key").starts_with("node.kubernetes.io/")) list.push_back(present);
  }
  Json toleration{{"key", taint.key.view()}, {"operator", "Exists"}, {"effect", taint.effect.view()}};
  if (!taint.value.empty()) {
    toleration["operator"] = "Equal";
    toleration["value"] = taint.value.view();
  }
  list.push_back(std::move(toleration));
  return change_template(asked, fmt::format("tolerate {}", to_string(taint)), {{"tolerations", std::move(list)}});
}

}  // namespace gso
