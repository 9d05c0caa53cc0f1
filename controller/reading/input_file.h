// Files that a person names: their text, and manifests in them.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "controller/reading/cluster_reader.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "reconcilers/cluster/manifests.h"

namespace gso {

// --- Reads what a command is given: a file by name, or stdin as "-".

inline constexpr std::size_t kMaxInputBytes = std::size_t{512} << 20;

// The whole text. Errors (reason `invalid`) name the file and say why it cannot be read, too large included.
[[nodiscard]] k8s::Result<std::string> read_input(const std::string& name, std::istream& stdin_stream);

// Nothing but blanks, comments and "---".
[[nodiscard]] bool is_blank(std::string_view text);

// As read_input(), but an empty stdin is an error: the program that should have written it has failed.
[[nodiscard]] k8s::Result<std::string> read_written_input(const std::string& name, std::istream& stdin_stream);

// Folders opened up, in the order of names, everything else as given: the .yaml, .yml and .json files below them (in
// any case), and files without an extension that read like a profile or a manifest, as the keys of a mounted ConfigMap
// are. Folders whose names begin with ".." are left out: the kubelet keeps a second copy of such a ConfigMap there.
// `problems`: gets a line for each folder that cannot be read or has no such file.
[[nodiscard]] std::vector<std::string> expand_folders(const std::vector<std::string>& given,
                                                      std::vector<std::string>& problems);

// --- Manifests instead of a live cluster: for commands that take either.

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
