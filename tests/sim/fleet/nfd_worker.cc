#include "tests/sim/fleet/nfd_worker.h"

#include <utility>

namespace gso::sim {

using namespace std::chrono_literals;

void NfdWorker::file_changed(const std::string& node, std::optional<std::map<std::string, std::string>> content) {
  const bool removed = files_[node].has_value() && !content;
  files_[node] = std::move(content);
  if (!looks_.contains(node)) return look_after(node, site_->pace.timing().nfd_batch);
  if (removed && site_->faults.worker_looks_in_the_gap) look_after(node, 0s);
}

void NfdWorker::look(const std::string& node) {
  master_->hand_over(node, files_[node].value_or(std::map<std::string, std::string>()));
  look_after(node, site_->pace.timing().nfd_worker);
}

void NfdWorker::look_after(const std::string& node, k8s::Duration delay) {
  std::shared_ptr<int>& next = looks_[node];
  next = std::make_shared<int>();
  site_->after(delay, next, [this, node] { look(node); });
}

}  // namespace gso::sim
