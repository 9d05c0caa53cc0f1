#include "reconcilers/cluster/sharing_labels.h"

#include "reconcilers/model/labels.h"

namespace gso {

bool is_sharing_label(std::string_view label) {
  if (label == kMpsCapable) return true;
  return label.starts_with("nvidia.com/") &&
         (label.ends_with(".replicas") || label.ends_with(".sharing-strategy") || label.ends_with(".product"));
}

}  // namespace gso
