#include "tests/sim/fleet/nfd_worker.h"

#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using namespace std::chrono_literals;

void NfdWorker::file_changed(const std::string& node, std::optional<std::map<std::string, std::string>> content) {
  const bool removed = files_[node].has_value() && !content;
  files_[node] = std::move(content);
  if (!looks_.contains(node)) return look_after(node, site_->pace.timing().nfd_batch);
  if (!removed || !site_->faults.worker_looks_in_the_gap) return;
  in_gap_.insert(node);
  report(node);
}

// A master that is slow to write must not swallow the gap: whoever sets the fault wants the labels to be away.
bool NfdWorker::gap_is_to_be_seen(const std::string& node) const {
  if (!in_gap_.contains(node)) return false;
  const JsonPtr live = site_->nodes.find({"", node});
  return live != nullptr && !text(labels(*live), "nvidia.com/gpu.product").empty();
}

void NfdWorker::look(const std::string& node) {
  if (gap_is_to_be_seen(node)) return look_after(node, site_->pace.timing().nfd_batch);
  in_gap_.erase(node);
  report(node);
}

void NfdWorker::report(const std::string& node) {
  master_->hand_over(node, files_[node].value_or(std::map<std::string, std::string>()));
  look_after(node, site_->pace.timing().nfd_worker);
}

void NfdWorker::look_after(const std::string& node, k8s::Duration delay) {
  std::shared_ptr<int>& next = looks_[node];
  next = std::make_shared<int>();
  site_->after(delay, next, [this, node] { look(node); });
}

}  // namespace gso::sim
