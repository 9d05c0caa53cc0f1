// Names and values that others choose: images, why containers wait, jobs, paths of MPS daemons, quantities, resources
// of slices, HAMi's marks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/objects.h"

namespace gso {

// --- Numbers, and Kubernetes quantities: "8", "500m", "2Ki", "1e3".

// nullopt: no quantity. The digits are read as a whole number and divided once, so that 1.5 and 1500m are equal.
// Source: k8s.io/apimachinery/pkg/api/resource (Quantity).
[[nodiscard]] std::optional<long double> parse_quantity(std::string_view text);
// "12", "-3", and nothing beside it; nullopt: no text, no such number, or more than 64 bits have.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::optional<std::string_view> text);

// --- The resources that nos's device plugin serves: nvidia.com/gpu-<N>gb, a slice of N GiB of one GPU's memory.

// N of a resource whose whole name is nvidia.com/gpu-<N>gb with N of at least 1, written without leading zeros and at
// most 99999; nullopt for any other name.
[[nodiscard]] std::optional<std::int64_t> slice_gigabytes(std::string_view resource);
// "nvidia.com/gpu-10gb"
[[nodiscard]] std::string slice_resource(std::int64_t gigabytes);

// --- Names of container images.

// The last part of the path, without tag and digest: "hami" of "registry:5000/mirror/hami:v2.5.0@sha256:…".
[[nodiscard]] constexpr std::string_view image_name(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image = image.substr(image.rfind('/') + 1);  // Without a slash: all of it.
  return image.substr(0, image.find(':'));
}

// --- Why a container waits, in the words of the kubelet (state.waiting.reason): it `starts`; the pull of its image
// fails, for now; it has `no_image`, whose name or signature is wrong or which nothing may pull; it is `not_created`,
// because something that its spec names is missing or the runtime refuses it; or it `crashes`, again and again.

enum class Waiting : std::uint8_t { unknown, starts, pull_fails, no_image, not_created, crashes };
[[nodiscard]] Waiting waiting_for(std::string_view reason);
// The container does not start by itself, or not soon.
[[nodiscard]] bool cannot_start(std::string_view reason);

// --- Jobs: pods that only work together (one lost worker ends the training run on every node), and which pod belongs
// to which job.

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

// --- What Project-HAMi writes on a Node and on its DaemonSet. Source: Project-HAMi/HAMi, pkg/device/nvidia/device.go
// and charts/hami/templates/device-plugin, from v2.4.0 to v2.10.0.

namespace gso::hami {

// Annotation of a Node: the GPUs that HAMi's device plugin has registered there. It stays when HAMi is removed.
inline constexpr std::string_view kRegistered = "hami.io/node-nvidia-register";
// Label of its device plugin's pods, with that value.
inline constexpr std::string_view kComponentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kComponent = "hami-device-plugin";
// The device plugin's container, and the last part of the name of its image: "projecthami/hami:v2.5.0".
inline constexpr std::string_view kContainer = "device-plugin";
inline constexpr std::string_view kImage = "hami";

}  // namespace gso::hami

namespace gso {

// --- Paths of hosts and containers, as manifests spell them.

// One spelling for one path: without repeated slashes, parts ".", and a slash at the end. Parts ".." stay: the API
// server refuses them in host paths.
[[nodiscard]] std::string clean_path(std::string_view path);

// The path is the directory or is below it. Both are clean.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view directory);

// --- The directory of a node in which clients find an MPS control daemon (CUDA_MPS_PIPE_DIRECTORY): what the pods of
// a standalone daemon report of it, and how a label of the Node names it.

// The init container of such a pod, whose termination message reports the directory.
inline constexpr std::string_view kStandaloneMpsCheck = "standalone-mps-check";

// Where a daemon is that no variable directs: in the first one with a driver from r615 on, if it runs as root.
inline constexpr std::string_view kRunPipeDirectory = "/run/nvidia-mps";
inline constexpr std::string_view kTmpPipeDirectory = "/tmp/nvidia-mps";
// `driver_version`: "615.20", or only its first number; what cannot be read counts as an older one.
[[nodiscard]] std::string_view default_pipe_directory(std::string_view driver_version, bool root);

// "/run/nvidia-mps" of the message "pipeDirectory=/run/nvidia-mps driver=615.20 gpus=8"; empty: it names no directory.
[[nodiscard]] std::string_view reported_pipe_directory(std::string_view message);

// The directory as a label's value: without its first slash, and with '.' for each other one ("run.nvidia-mps"). Empty:
// it cannot be expressed, because it is not clean (foreign_names.h), is longer than 64 characters, does not begin
// and end with a letter or digit, or has characters other than these, '-' and '_'. Two directories never have the same
// value.
[[nodiscard]] std::string pipe_directory_label(std::string_view directory);
// The directory that has this value; empty: none has.
[[nodiscard]] std::string pipe_directory_of_label(std::string_view value);

// At or below a directory that MPS daemons use by default (from driver r615 on /run/nvidia-mps), or one of the plugin's
// chart and of the GPU Operator. `path`: clean.
[[nodiscard]] bool is_usual_pipe_directory(std::string_view path);

}  // namespace gso
