// Labels and annotations of the job controllers and gang schedulers that are used with GPUs.
#include "reconcilers/model/jobs.h"

#include <fmt/format.h>

#include <algorithm>

namespace gso {
namespace {

struct Mark {
  std::string_view key;
  bool label = true;
};

// From the widest to the narrowest. Sources: JobSet API; KAI-Scheduler's pod grouper; Volcano; scheduler-plugins
// (coscheduling); LeaderWorkerSet; KubeRay; Kubeflow's training operator; batch/v1, since 1.27 and before.
constexpr Mark kMarks[] = {{"jobset.sigs.k8s.io/jobset-name"},
                           {"pod-group-name", false},
                           {"scheduling.k8s.io/group-name", false},
                           {"scheduling.x-k8s.io/pod-group"},
                           {"leaderworkerset.sigs.k8s.io/group-key"},
                           {"ray.io/cluster"},
                           {"training.kubeflow.org/job-name"},
                           {"batch.kubernetes.io/job-name"},
                           {"job-name"}};

}  // namespace

std::string Job::id() const {
  return fmt::format("{}/{}={}", ns, key, value);
}

std::optional<Job> job_of(const Pod& pod) {
  for (const Mark& mark : kMarks) {
    const auto value = mark.label ? pod.meta.labels.get(mark.key) : pod.meta.annotations.get(mark.key);
    if (!value || value->empty()) continue;
    return Job{std::string(pod.meta.ns.view()), std::string(mark.key), std::string(*value), mark.label};
  }
  const auto* owner = pod.meta.controller();
  if (owner == nullptr || !owner->kind.view().ends_with("Job")) return std::nullopt;
  return Job{std::string(pod.meta.ns.view()), std::string(owner->kind.view()), std::string(owner->name.view()), false};
}

bool names_a_job(std::string_view annotation) {
  return std::ranges::any_of(kMarks, [&](const Mark& mark) { return !mark.label && mark.key == annotation; });
}

bool is_label_of_a_job(std::string_view label) {
  return std::ranges::any_of(kMarks, [&](const Mark& mark) { return mark.label && mark.key == label; });
}

}  // namespace gso
