#include "reconcilers/model/config_map_write.h"

#include <memory>

namespace gso {

ConfigMap written(const ConfigMap* present, const WriteConfigMap& write) {
  ConfigMap out = present == nullptr ? ConfigMap() : *present;
  out.meta.ns = k8s::Interned(write.config_map.ns);
  out.meta.name = write.config_map.name;
  out.meta.resource_version.clear();
  for (const auto& [key, text] : write.set) out.data[key] = std::make_shared<const std::string>(text);
  for (const std::string& key : write.remove) out.data.erase(key);
  return out;
}

}  // namespace gso
