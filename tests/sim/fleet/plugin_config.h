// A plugin config document as the emulated programs read it. Deliberately not the operator's parser: if both had the
// same bug, the simulated fleet would agree with it. Covers what a fleet meets: sharing sections, replicas, names,
// renaming, MIG strategy; the fine points of YAML are the business of the operator's own test vectors.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace gso::sim {

// A release of the device plugin, from its image tag. Decides which defects the programs have.
struct PluginVersion {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const PluginVersion&, const PluginVersion&) = default;
  // From "repository/name:v0.18.2" (or a bare "v0.18.2", or without the v, as Nebuly's fork has it); the newest
  // behaviour when there is no readable tag.
  [[nodiscard]] static PluginVersion of_image(std::string_view image);

  // config-manager's first answer is "" before it knows the label, so the default comes first on every start.
  [[nodiscard]] bool default_first() const { return *this >= PluginVersion{0, 18, 2}; }
  // config-manager with hostPID runs into the empty command line of a kernel thread.
  [[nodiscard]] bool panics_on_kernel_threads() const {
    return *this >= PluginVersion{0, 18, 0} && *this <= PluginVersion{0, 19, 3};
  }
  // `failRequestsGreaterThanOne: false` under mps is obeyed; earlier releases force true.
  [[nodiscard]] bool obeys_mps_fail_requests() const { return *this >= PluginVersion{0, 20, 0}; }
};

struct PluginConfig {
  struct Resource {
    std::string name;  // With its prefix.
    std::int64_t replicas = 0;
  };
  std::string mig_strategy = "none";
  bool mps = false;     // The mps section is there, with an entry of more than one replica.
  bool shared = false;  // Some section is active.
  bool rename = false;
  bool fail_requests_greater_than_one = false;
  std::vector<Resource> resources;  // Of the section that counts.

  // 1 when nothing shares the resource. The plugin takes the largest of duplicates, feature discovery the first.
  [[nodiscard]] std::int64_t replicas_largest(std::string_view resource) const;
  [[nodiscard]] std::int64_t replicas_first(std::string_view resource) const;
  // The name under which the plugin registers a resource: with ".shared" when it is shared and renamed.
  [[nodiscard]] std::string registered_name(const std::string& resource) const;
};

// The error is the text that the program prints before it exits with 1.
[[nodiscard]] std::expected<PluginConfig, std::string> read_plugin_config(std::string_view text, PluginVersion version);

}  // namespace gso::sim
