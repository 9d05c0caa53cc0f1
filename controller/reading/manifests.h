// Manifests instead of a live cluster: for commands that take either.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "controller/reading/cluster_reader.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "reconcilers/cluster/manifests.h"

namespace gso {

// The files as text. Errors (`invalid`) name the one that cannot be read; nothing at all in any of them is one, too.
[[nodiscard]] k8s::Result<std::vector<ManifestFile>> read_files(const std::vector<std::string>& files,
                                                                std::istream& in);

// The objects in them as the whole cluster at `now`; `ignored` gets those of kinds that are not read. Errors: as
// load_manifests().
[[nodiscard]] k8s::Result<ClusterView> view_of(const std::vector<ManifestFile>& files, k8s::WallTime now,
                                               const PlannerSettings& settings,
                                               std::vector<std::string>* ignored = nullptr);

// The JSON of one pod among them; empty: it is not there. A pod without a namespace is in `default`.
[[nodiscard]] std::string pod_in(const std::vector<ManifestFile>& files, const k8s::ObjectKey& pod);

// The present, in milliseconds.
[[nodiscard]] k8s::WallTime present();

}  // namespace gso
