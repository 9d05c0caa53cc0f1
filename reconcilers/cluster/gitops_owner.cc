// See gitops_owner.h.
#include "reconcilers/cluster/gitops_owner.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "reconcilers/model/foreign_text.h"

namespace gso {
namespace {

struct OwnerMark {
  std::string_view prefix;
  std::string_view tool;
};
// Flux's helm-controller also leaves the marks of Helm: these come last.
constexpr std::array<OwnerMark, 3> kSyncKeys{{{"argocd.argoproj.io/", "Argo CD"},
                                              {"kustomize.toolkit.fluxcd.io/", "Flux"},
                                              {"helm.toolkit.fluxcd.io/", "Flux"}}};
constexpr std::array<OwnerMark, 5> kSyncManagers{{{"argocd", "Argo CD"},
                                                  {"kustomize-controller", "Flux"},
                                                  {"helm-controller", "Flux"},
                                                  {"flux", "Flux"},
                                                  {"source-controller", "Flux"}}};
constexpr std::array<OwnerMark, 1> kHelmKeys{{{"meta.helm.sh/release-name", "Helm"}}};
constexpr std::array<OwnerMark, 1> kHelmManagers{{{"helm", "Helm"}}};

GitOpsOwner owner_by_keys(const StringMap& map, std::string_view field, std::span<const OwnerMark> marks) {
  for (const OwnerMark& mark : marks) {
    for (const auto& entry : map) {
      if (!entry.key.view().starts_with(mark.prefix)) continue;
      return {mark.tool, fmt::format("{} {}={}", field, entry.key.view(), shown_value(entry.value.view())), false};
    }
  }
  return {};
}

GitOpsOwner owner_by_managers(const ConfigMap& config_map, std::span<const OwnerMark> marks) {
  for (const Interned& manager : config_map.data_managers) {
    for (const OwnerMark& mark : marks) {
      if (manager.view().starts_with(mark.prefix))
        return {mark.tool, fmt::format("field manager {}", shown_value(manager.view())), false};
    }
  }
  return {};
}

GitOpsOwner owner_of(const ConfigMap& config_map, std::span<const OwnerMark> keys,
                     std::span<const OwnerMark> managers) {
  GitOpsOwner out = owner_by_keys(config_map.meta.annotations, "annotations", keys);
  if (out.tool.empty()) out = owner_by_keys(config_map.meta.labels, "labels", keys);
  if (out.tool.empty()) out = owner_by_managers(config_map, managers);
  return out;
}

}  // namespace

GitOpsOwner gitops_owner(const ConfigMap& config_map) {
  GitOpsOwner out = owner_of(config_map, kSyncKeys, kSyncManagers);
  if (!out.tool.empty()) {
    out.syncs = true;
    return out;
  }
  return owner_of(config_map, kHelmKeys, kHelmManagers);
}

}  // namespace gso
