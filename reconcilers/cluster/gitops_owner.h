// Whether a program syncs a ConfigMap from another source, by the marks that it leaves on the object.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/model/objects.h"

namespace gso {

struct GitOpsOwner {
  std::string_view tool;  // "Argo CD", "Flux", "Helm"; empty: nobody is known.
  std::string mark;       // "labels kustomize.toolkit.fluxcd.io/name=gpu", "field manager argocd-controller"
  // It undoes an edit by itself. Helm does not: it writes at the next upgrade.
  bool syncs = false;
};
[[nodiscard]] GitOpsOwner gitops_owner(const ConfigMap& config_map);

}  // namespace gso
