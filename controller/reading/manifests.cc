// Files to texts to a ClusterView.
#include "controller/reading/manifests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <utility>

#include "controller/config/operator_options.h"
#include "controller/reading/input_file.h"
#include "reconcilers/lint/lint.h"

namespace gso {

k8s::Result<std::vector<ManifestFile>> read_files(const std::vector<std::string>& files, std::istream& in) {
  std::vector<ManifestFile> out;
  bool nothing = true;
  std::vector<std::string> problems;
  const std::vector<std::string> names = expand_folders(files, problems);
  if (!problems.empty()) return k8s::fail(k8s::Reason::invalid, problems.front());
  for (const std::string& name : names) {
    k8s::Result<std::string> text = read_written_input(name, in);
    if (!text) return std::unexpected(text.error());
    nothing = nothing && is_blank(*text);
    out.push_back({name, *std::move(text)});
  }
  if (nothing) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("no manifest found in {}; pass cluster objects as printed by `kubectl get … -o yaml`",
                                 fmt::join(files, ", ")));
  }
  return out;
}

k8s::Result<ClusterView> view_of(const std::vector<ManifestFile>& files, k8s::WallTime now,
                                 const PlannerSettings& settings, std::vector<std::string>* ignored) {
  k8s::Result<LoadedManifests> loaded = load_manifests(files, now, settings);
  if (!loaded) return std::unexpected(loaded.error());
  // What the operator says among them of itself: whose DaemonSets it believes.
  const PlannerSettings of_operator = settings_of_operator(loaded->world, settings);
  if (of_operator.operand_namespaces != settings.operand_namespaces) {
    loaded = load_manifests(files, now, of_operator);
    if (!loaded) return std::unexpected(loaded.error());
  }
  if (ignored != nullptr) *ignored = std::move(loaded->ignored);
  ClusterView view;
  view.world = std::move(loaded->world);
  view.consumers = std::move(loaded->consumers);
  view.leases = std::move(loaded->leases);
  return view;
}

std::string pod_in(const std::vector<ManifestFile>& files, const k8s::ObjectKey& pod) {
  for (const ManifestFile& file : files) {
    std::vector<ClusterObject> objects;
    (void)lint_text(file.name, file.text, KaiPodRules(), &objects);
    for (ClusterObject& object : objects) {
      const bool here = object.ns.empty() ? pod.ns == "default" : pod.ns == object.ns;
      if (object.kind == "Pod" && object.name == pod.name && here) return std::move(object.json);
    }
  }
  return {};
}

k8s::WallTime present() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace gso
