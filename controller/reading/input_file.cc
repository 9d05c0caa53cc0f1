// Whole files and stdin into strings, up to a limit.
#include "controller/reading/input_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <ranges>
#include <utility>

#include "controller/config/options.h"
#include "k8sclient/value/encoding.h"
#include "reconcilers/lint/lint.h"

namespace gso {

namespace {

namespace fs = std::filesystem;

// The beginning of the file has a line that a profile or a manifest begins with. Enough to distinguish the key of a
// ConfigMap, be it broken, from a LICENSE.
bool begins_like_a_document(const fs::path& path) {
  static constexpr std::array<std::string_view, 6> kSigns{
      "version:", "sharing:", "flags:", "kind:", "apiVersion:", "{"};
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4096> buffer{};
  file.read(buffer.data(), buffer.size());
  const std::string_view text(buffer.data(), static_cast<std::size_t>(file.gcount()));
  if (text.find('\0') != std::string_view::npos) return false;
  return std::ranges::any_of(std::views::split(text, '\n'), [](const auto& part) {
    const std::string_view line(part.begin(), part.end());
    return std::ranges::any_of(kSigns, [&](std::string_view sign) { return line.starts_with(sign); });
  });
}

// In any case: DEVICES.YAML comes from a system that keeps none.
bool is_document_file(const fs::path& path) {
  const std::string extension = k8s::lower(path.extension().string());
  if (extension == ".yaml" || extension == ".yml" || extension == ".json") return true;
  const std::string name = path.filename().string();
  return extension.empty() && !name.starts_with('.') && begins_like_a_document(path);
}

// The files below one folder, sorted.
std::vector<std::string> documents_below(const std::string& folder, std::error_code& failed) {
  std::vector<std::string> found;
  fs::recursive_directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored) && (name.starts_with("..") || name == ".git"))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file(ignored) && is_document_file(entry->path()))
      found.push_back(entry->path().string());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<std::string> expand_folders(const std::vector<std::string>& given, std::vector<std::string>& problems) {
  std::vector<std::string> out;
  for (const std::string& name : given) {
    std::error_code failed;
    if (name == "-" || !fs::is_directory(name, failed)) {
      out.push_back(name);
      continue;
    }
    std::vector<std::string> found = documents_below(name, failed);
    if (failed)
      problems.push_back(fmt::format("{}: cannot be read: {}", name, failed.message()));
    else if (found.empty())
      problems.push_back(fmt::format("{}: no .yaml, .yml or .json file, and no profile, found in this folder", name));
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

k8s::Result<std::string> read_input(const std::string& name, std::istream& stdin_stream) {
  std::ifstream file;
  const bool from_stdin = name == "-";
  if (!from_stdin) {
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored))
      return k8s::fail(k8s::Reason::invalid, fmt::format("{} is a directory, not a file", name));
    errno = 0;
    file.open(name, std::ios::binary);
    if (!file)
      return k8s::fail(k8s::Reason::invalid, fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  std::istream& stream = from_stdin ? stdin_stream : file;
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxInputBytes)
      return k8s::fail(k8s::Reason::invalid, fmt::format("{}: has more than {} bytes", name, kMaxInputBytes));
  }
  if (stream.bad())
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: cannot be read to its end", from_stdin ? "stdin" : name));
  return text;
}

bool is_blank(std::string_view text) {
  return std::ranges::all_of(std::views::split(text, '\n'), [](const auto& part) {
    const std::string_view line(part.begin(), part.end());
    const auto first = line.find_first_not_of(" \t\r");
    return first == std::string_view::npos || line[first] == '#' ||
           (first == 0 && line.substr(0, line.find_last_not_of(" \t\r") + 1) == "---");
  });
}

k8s::Result<std::string> read_written_input(const std::string& name, std::istream& stdin_stream) {
  auto text = read_input(name, stdin_stream);
  if (text && name == "-" && text->find_first_not_of(" \t\r\n") == std::string::npos)
    return k8s::fail(k8s::Reason::invalid, "stdin is empty; did the command before it fail?");
  return text;
}

// --- Files to texts to a ClusterView.

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
  return ClusterView{.now = now,
                     .world = std::move(loaded->world),
                     .consumers = std::move(loaded->consumers),
                     .unstarted = std::move(loaded->unstarted),
                     .leases = std::move(loaded->leases)};
}

std::string pod_in(const std::vector<ManifestFile>& files, const k8s::ObjectKey& pod) {
  for (const ManifestFile& file : files) {
    std::vector<ClusterObject> objects;
    (void)lint_text(file.name, file.text, PodRules(), &objects);
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
