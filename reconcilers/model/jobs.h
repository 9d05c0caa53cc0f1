// Jobs: pods that only work together (one lost worker ends the training run on every node), and which pod belongs to
// which job.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/model/objects.h"

namespace gso {

// What the members of one job have in common, in one namespace.
struct Job {
  std::string ns;
  std::string key;        // A label or annotation, or the kind of the controller.
  std::string value;      // Its value, or the controller's name.
  bool by_label = false;  // `key` is a label: the members can be listed by it.
  // "train/batch.kubernetes.io/job-name=mnist", "train/PyTorchJob=mnist": equal for all members, and readable for
  // people.
  [[nodiscard]] std::string id() const;
};

// The widest group that the pod names: a JobSet, a pod group of a gang scheduler (KAI, Volcano, the scheduler plugins),
// a LeaderWorkerSet, a Ray cluster, a job of Kubeflow or of batch/v1, or else a controller whose kind ends in "Job".
// nullopt for every other pod: replicas of a Deployment or StatefulSet replace each other, and must not all be evicted
// at once.
[[nodiscard]] std::optional<Job> job_of(const Pod& pod);
// Annotations, and labels, that job_of() reads, for the projection of pods.
[[nodiscard]] bool names_a_job(std::string_view annotation);
[[nodiscard]] bool is_label_of_a_job(std::string_view label);

}  // namespace gso
