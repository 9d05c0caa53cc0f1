#include "tests/sim/fleet/plugin_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>

namespace gso::sim {
namespace {

using Error = std::unexpected<std::string>;

std::expected<PluginConfig::Resource, std::string> read_resource(const YAML::Node& node) {
  if (!node.IsMap() || !node["name"]) return Error("no resource name specified");
  PluginConfig::Resource resource{.name = node["name"].as<std::string>("")};
  if (resource.name.empty()) return Error("incorrect format for resource name");
  if (!resource.name.starts_with("nvidia.com/")) resource.name = "nvidia.com/" + resource.name;
  if (resource.name.size() > 63) return Error("fully-qualified resource name must be 63 characters or less");
  if (!node["replicas"]) return Error("no replicas specified");
  if (node["replicas"].IsNull()) return Error("number of replicas must be >= 2");
  std::int64_t replicas = 0;
  if (!YAML::convert<std::int64_t>::decode(node["replicas"], replicas) || node["replicas"].Tag() == "!")
    return Error("cannot unmarshal replicas into a value of type int");
  if (replicas < 2) return Error("number of replicas must be >= 2");
  resource.replicas = replicas;
  return resource;
}

std::expected<std::vector<PluginConfig::Resource>, std::string> read_section(const YAML::Node& section) {
  if (!section.IsMap() && !section.IsNull()) return Error("cannot unmarshal the sharing section");
  const YAML::Node list = section.IsMap() ? section["resources"] : YAML::Node();
  if (!list || list.IsNull() || list.size() == 0) return Error("no resources specified");
  if (!list.IsSequence()) return Error("cannot unmarshal resources");
  std::vector<PluginConfig::Resource> resources;
  for (const auto& entry : list) {
    auto resource = read_resource(entry);
    if (!resource) return Error(resource.error());
    resources.push_back(*std::move(resource));
  }
  return resources;
}

// Fills `config` from one section that counts.
void use_section(PluginConfig& config, const YAML::Node& section, std::vector<PluginConfig::Resource> resources) {
  config.resources = std::move(resources);
  config.shared = true;
  config.rename = section["renameByDefault"].as<bool>(false);
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// A field of a struct, as encoding/json finds it: in any case, the exact name first. The sections `timeSlicing` and
// `mps` and their entries are read from maps by exact name (UnmarshalJSON in replicas.go).
YAML::Node field(const YAML::Node& object, std::string_view name) {
  YAML::Node found(YAML::NodeType::Undefined);
  for (const auto& entry : object) {
    const std::string key = entry.first.as<std::string>("");
    if (key == name) return entry.second;
    if (same_but_for_case(key, name)) found.reset(entry.second);
  }
  return found;
}

std::expected<PluginConfig, std::string> read_document(const YAML::Node& document, PluginVersion version) {
  PluginConfig config;
  if (document.IsNull()) return config;
  if (!document.IsMap()) return Error("cannot unmarshal the config file: it is no mapping");
  const std::string declared = field(document, "version").as<std::string>("v1");
  if (declared != "v1" && !declared.empty() && declared != "null") return Error("unknown version: " + declared);
  if (const YAML::Node flags = field(document, "flags"); flags && flags.IsMap())
    config.mig_strategy = field(flags, "migStrategy").as<std::string>("none");
  const YAML::Node sharing = field(document, "sharing");
  if (!sharing || sharing.IsNull()) return config;
  if (!sharing.IsMap()) return Error("cannot unmarshal sharing");
  const YAML::Node slicing = field(sharing, "timeSlicing");
  if (slicing.IsDefined()) {
    auto resources = read_section(slicing);
    if (!resources) return Error(resources.error());
    use_section(config, slicing, *std::move(resources));
    config.fail_requests_greater_than_one = slicing["failRequestsGreaterThanOne"].as<bool>(false);
  }
  const YAML::Node mps = field(sharing, "mps");
  if (mps.IsDefined() && !mps.IsNull()) {
    auto resources = read_section(mps);
    if (!resources) return Error(resources.error());
    use_section(config, mps, *std::move(resources));
    config.mps = true;
    const bool wanted = mps["failRequestsGreaterThanOne"].as<bool>(true);
    config.fail_requests_greater_than_one = version.obeys_mps_fail_requests() ? wanted : true;
  }
  return config;
}

}  // namespace

PluginVersion PluginVersion::of_image(std::string_view image) {
  const auto colon = image.rfind(':');
  std::string tag(colon == std::string_view::npos ? image : image.substr(colon + 1));
  if (tag.starts_with('v')) tag.erase(0, 1);
  PluginVersion version;
  if (std::sscanf(tag.c_str(), "%d.%d.%d", &version.major, &version.minor, &version.patch) < 2) return {999, 0, 0};
  return version;
}

std::int64_t PluginConfig::replicas_largest(std::string_view resource) const {
  std::int64_t most = 1;
  for (const Resource& entry : resources)
    if (entry.name == resource) most = std::max(most, entry.replicas);
  return most;
}

std::int64_t PluginConfig::replicas_first(std::string_view resource) const {
  auto it = std::ranges::find(resources, resource, &Resource::name);
  return it == resources.end() ? 1 : it->replicas;
}

std::string PluginConfig::registered_name(const std::string& resource) const {
  return rename && replicas_largest(resource) > 1 ? resource + ".shared" : resource;
}

std::expected<PluginConfig, std::string> read_plugin_config(std::string_view text, PluginVersion version) {
  try {
    return read_document(YAML::Load(std::string(text)), version);
  } catch (const YAML::Exception& error) {
    return Error(std::string("unable to parse the config file: ") + error.what());
  }
}

}  // namespace gso::sim
