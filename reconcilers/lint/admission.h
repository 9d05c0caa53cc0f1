// What lint says about an object that the API server is about to store: the answer of the validating webhook, which
// `kubectl edit` and `kubectl apply` show. Pure: the HTTP side is controller/serving/admission_review.h.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reconcilers/kai/pod_annotations.h"

namespace gso {

struct AdmissionRules {
  PodRules pods;
  bool refuse_pods = false;  // Errors of Pods refuse them; otherwise they are warnings.
  bool dry_run = false;      // Nothing is stored.
  // Who uses a key of the ConfigMap that is judged, for people; empty: nobody. Not set: nobody uses any.
  std::function<std::string(const std::string& key)> key_users{};
};

struct AdmissionVerdict {
  // Each is an entry of `details.causes`: `line` is what lint prints.
  struct Cause {
    std::string field;  // "data[any]", "spec.rollout.workloads"
    std::string line;
    friend bool operator==(const Cause&, const Cause&) = default;
  };
  std::vector<Cause> causes;          // Not empty: the object is refused.
  std::vector<std::string> warnings;  // Lint's lines, uncut.
  // Prints the same in a shell: of the stored object, or of its author's file if none is stored or its name is not
  // known yet.
  std::string command;
  [[nodiscard]] bool allowed() const { return causes.empty(); }
};

// A ConfigMap with profiles, a SharingPolicy, a Pod or a workload with a template of pods, with `apiVersion`, `kind`
// and `metadata` as in an AdmissionReview. Objects of other kinds have no findings. `before`: the stored object; null:
// it is created.
//
// A workload is never refused, and neither is the removal of a key that is used: a release may rename a key and say so
// to the plugin in its next object. Both are warnings.
//
// Only what the request changes can refuse it: an error that was there before is a warning, so that a ConfigMap with
// two broken profiles can be corrected one by one, and a policy's metadata can always be written.
[[nodiscard]] AdmissionVerdict judge_admission(const nlohmann::json& object, const nlohmann::json& before,
                                               const AdmissionRules& rules);
// The stored object is deleted: a warning for each key of a ConfigMap that is used.
[[nodiscard]] AdmissionVerdict judge_deletion(const nlohmann::json& before, const AdmissionRules& rules);

// The warnings as kubectl shows them, each of at most 256 characters and all of at most 4096 (longer ones are cut by
// the API server): what is cut names the command that shows the rest.
[[nodiscard]] std::vector<std::string> kubectl_warnings(const AdmissionVerdict& verdict);

}  // namespace gso
