#include "reconcilers/model/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/selectors.h"

namespace gso {

namespace {

// What a suffix multiplies by, as a fraction.
struct Factor {
  long double times = 1;
  long double by = 1;
};

// The number of "e3" or "E-3".
std::optional<int> exponent_of(std::string_view suffix) {
  if (!suffix.starts_with('e') && !suffix.starts_with('E')) return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix.starts_with('+')) suffix.remove_prefix(1);
  int value = 0;
  const char* const end = suffix.data() + suffix.size();
  const auto [rest, code] = std::from_chars(suffix.data(), end, value);
  constexpr int kMost = 1000;  // Of either sign: more is no amount of anything.
  if (code != std::errc{} || rest != end || std::abs(value) > kMost) return std::nullopt;
  return value;
}

std::optional<Factor> factor_of(std::string_view suffix) {
  if (suffix.empty()) return Factor{};
  if (suffix == "m") return Factor{1, 1e3L};
  if (suffix == "u") return Factor{1, 1e6L};
  if (suffix == "n") return Factor{1, 1e9L};
  constexpr std::string_view kLetters = "kMGTPE";
  const bool binary = suffix.size() == 2 && suffix[1] == 'i';
  const auto power = binary && suffix[0] == 'K' ? 0 : kLetters.find(suffix[0]);
  if ((suffix.size() == 1 || binary) && power != std::string_view::npos && !(binary && suffix[0] == 'k'))
    return Factor{std::pow(binary ? 1024.0L : 1000.0L, static_cast<long double>(power + 1)), 1};
  const auto exponent = exponent_of(suffix);
  if (!exponent) return std::nullopt;
  const long double power_of_ten = std::pow(10.0L, static_cast<long double>(std::abs(*exponent)));
  return *exponent < 0 ? Factor{1, power_of_ten} : Factor{power_of_ten, 1};
}

}  // namespace

std::optional<std::int64_t> whole_number(std::optional<std::string_view> text) {
  std::int64_t value = 0;
  if (!text) return std::nullopt;
  const auto [rest, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  return code == std::errc{} && rest == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

std::optional<long double> parse_quantity(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  long double digits = 0;
  long double by = 1;
  bool any = false;
  bool point = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
    } else if (k8s::is_digit(c)) {
      any = true;
      digits = digits * 10 + (c - '0');
      if (point) by *= 10;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  const auto factor = any ? factor_of(text) : std::nullopt;
  if (!factor) return std::nullopt;
  const long double value = digits * factor->times / (by * factor->by);
  return negative ? -value : value;
}

namespace {
constexpr std::string_view kSlicePrefix = "nvidia.com/gpu-";
constexpr std::string_view kSuffix = "gb";
constexpr std::size_t kMostDigits = 5;
}  // namespace

std::optional<std::int64_t> slice_gigabytes(std::string_view resource) {
  if (!resource.starts_with(kSlicePrefix) || !resource.ends_with(kSuffix)) return std::nullopt;
  if (resource.size() <= kSlicePrefix.size() + kSuffix.size()) return std::nullopt;
  const std::string_view digits =
      resource.substr(kSlicePrefix.size(), resource.size() - kSlicePrefix.size() - kSuffix.size());
  const bool plain = k8s::is_digit(digits.front()) && digits.front() != '0' && digits.size() <= kMostDigits;
  return plain ? whole_number(digits) : std::nullopt;
}

std::string slice_resource(std::int64_t gigabytes) {
  return fmt::format("{}{}{}", kSlicePrefix, gigabytes, kSuffix);
}

// --- Labels and annotations of the job controllers and gang schedulers that are used with GPUs.

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

std::string clean_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (absolute || !out.empty()) out += '/';
    out += part;
  }
  return out.empty() && absolute ? "/" : out;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return directory.ends_with('/') || path.size() == directory.size() || path[directory.size()] == '/';
}

std::string_view default_pipe_directory(std::string_view driver_version, bool root) {
  constexpr int kFirstDriverWithRun = 615;
  int major = 0;
  std::from_chars(driver_version.data(), driver_version.data() + driver_version.size(), major);
  return root && major >= kFirstDriverWithRun ? kRunPipeDirectory : kTmpPipeDirectory;
}

Waiting waiting_for(std::string_view reason) {
  // Source: pkg/kubelet/images/types.go and pkg/kubelet/container/sync_result.go.
  static constexpr std::pair<Waiting, std::array<std::string_view, 4>> kRows[] = {
      {Waiting::starts, {"ContainerCreating", "PodInitializing"}},
      {Waiting::pull_fails, {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}},
      {Waiting::no_image, {"InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "SignatureValidationFailed"}},
      {Waiting::not_created, {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}},
      {Waiting::crashes, {"CrashLoopBackOff"}}};
  for (const auto& [waiting, reasons] : kRows)
    if (!reason.empty() && std::ranges::find(reasons, reason) != reasons.end()) return waiting;
  return Waiting::unknown;
}

bool cannot_start(std::string_view reason) {
  return waiting_for(reason) > Waiting::starts;
}

std::string_view reported_pipe_directory(std::string_view message) {
  constexpr std::string_view kReport = "pipeDirectory=";
  if (!message.starts_with(kReport)) return {};
  message.remove_prefix(kReport.size());
  return message.substr(0, message.find_first_of(" \t\r\n"));
}

std::string pipe_directory_label(std::string_view directory) {
  if (!directory.starts_with('/') || clean_path(directory) != directory) return {};
  std::string out(directory.substr(1));
  if (out.empty() || out.contains('.')) return {};
  std::ranges::replace(out, '/', '.');
  return k8s::label_value_problem(out) ? std::string() : out;
}

std::string pipe_directory_of_label(std::string_view value) {
  std::string out = "/" + std::string(value);
  std::ranges::replace(out, '.', '/');
  return !value.empty() && pipe_directory_label(out) == value ? out : std::string();
}

bool is_usual_pipe_directory(std::string_view path) {
  constexpr std::string_view kUsual[] = {"/run/nvidia/mps",     kRunPipeDirectory, "/var/run/nvidia/mps",
                                         "/var/run/nvidia-mps", kTmpPipeDirectory, "/mps"};
  return std::ranges::any_of(kUsual, [&](std::string_view usual) { return is_at_or_below(path, usual); });
}

}  // namespace gso
