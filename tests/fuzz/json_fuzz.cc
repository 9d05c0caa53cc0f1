// Any bytes as JSON: GPUs of `expect --devices`, a Node of `expect --node`, manifests of `plan`, and a profile that a
// JSON ConfigMap holds. No crash, and the profile's verdict is the one of the same text in a file of its own.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/profile.h"

namespace {

void read_devices(std::string_view text) {
  static const gso::ParsedProfile kProfile =
      gso::parse_profile("sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n");
  for (const auto& devices : {gso::parse_devices(text), gso::devices_of_node(text)})
    if (devices) static_cast<void>(gso::expected_state(kProfile.profile, *devices));
}

void read_manifests(const std::string& text) {
  const auto loaded = gso::load_manifests({{"input", text}}, gso::WallTime{});
  if (loaded) static_cast<void>(gso::check_cluster(loaded->world, {}));
}

void read_key_of_config_map(const std::string& text) {
  const nlohmann::json config_map = {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "c"}}}, {"data", {{"key", text}}}};
  std::string json;
  try {
    json = config_map.dump();
  } catch (const nlohmann::json::exception&) {
    return;  // No UTF-8, which no ConfigMap holds.
  }
  const auto documents = gso::lint_text("input", json, {});
  const gso::ParsedProfile parsed = gso::parse_profile(text);
  if (documents.back().key != "key" || documents.back().valid() != parsed.valid() ||
      documents.back().profile.has_value() != parsed.accepted) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_devices(text);
  read_manifests(text);
  read_key_of_config_map(text);
  return 0;
}
