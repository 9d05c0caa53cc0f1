// The label gpusharing.dev/mps-pipe-directory of a Node, as the pod of its standalone MPS daemon asks for it now: where
// clients find the daemon. When it is written: standalone/directory_labels.h.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

struct DirectoryLabel {
  enum class Daemon {
    none,     // The node has no pod of a standalone daemon.
    silent,   // It has one that is not Ready or has reported no directory, or the label is not the operator's to write.
    serving,  // In `directory`.
  };
  Daemon daemon = Daemon::silent;
  std::string_view directory;  // On the node; as long as the pod is in the stores.
  std::string value;           // Of `directory`; empty: no label's value can express it.
  // What the operator writes for it. Empty: nothing, because the label is right or contested, or is another client's.
  LabelChange change;
};

[[nodiscard]] DirectoryLabel directory_label(const Pass& pass, const Node& node);

}  // namespace gso
