#include "tests/sim/fleet/mig_manager.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/paused_operands.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char *kConfig = "nvidia.com/mig.config", *kMigState = "nvidia.com/mig.config.state";

// The GPUs of a machine under one of the manager's configs; nothing for a name that it does not know.
std::optional<std::vector<Gpu>> cut(std::vector<Gpu> gpus, const std::string& config) {
  if (config != "all-disabled" && config != "all-1g.5gb") return std::nullopt;
  const Gpu sliced = a100_mig_1g();
  for (Gpu& gpu : gpus) {
    if (!gpu.mig_capable) continue;
    gpu.mig_enabled = config != "all-disabled";
    gpu.slices = gpu.mig_enabled ? sliced.slices : std::vector<MigSlice>();
  }
  return gpus;
}

bool same_cut(const std::vector<Gpu>& one, const std::vector<Gpu>& other) {
  return std::ranges::equal(one, other, [](const Gpu& a, const Gpu& b) {
    return a.mig_enabled == b.mig_enabled && a.slices.size() == b.slices.size();
  });
}

}  // namespace

MigManager::MigManager(Site* site, std::function<Machine*(const std::string&)> machine_of)
    : Actor(site), machine_of_(std::move(machine_of)) {}

void MigManager::on_node(const JsonPtr& after) {
  if (after == nullptr || text(labels(*after), "nvidia.com/gpu.deploy.mig-manager") != "true") return;
  const std::string& config = text(labels(*after), kConfig);
  std::string& seen = seen_[name_of(*after)];
  if (config.empty() || std::exchange(seen, config) == config) return;
  reconfigure(name_of(*after), config);
}

void MigManager::reconfigure(const std::string& node, const std::string& config) {
  Machine* machine = machine_of_(node);
  if (machine == nullptr) return;
  auto gpus = cut(machine->gpus(), config);
  if (!gpus) return write(node, "failed", nullptr);
  if (same_cut(*gpus, machine->gpus())) return write(node, "success", nullptr);
  write(node, "pending", "paused-for-mig-change");
  apply_once_alone(node, *std::move(gpus));
}

// Not before the pods that use the GPUs are gone.
void MigManager::apply_once_alone(const std::string& node, std::vector<Gpu> gpus) {
  site_->after(site_->pace.timing().mig_apply, life_, [this, node, gpus = std::move(gpus)] {
    if (paused_operands_run(*site_, node) || site_->faults.jobs_remain) return apply_once_alone(node, gpus);
    machine_of_(node)->set_gpus(gpus);
    write(node, "success", "true");
  });
}

void MigManager::write(const std::string& node, const std::string& state, const char* deploy) {
  json patch;
  patch["metadata"]["labels"][kMigState] = state;
  if (deploy != nullptr)
    for (const char* label : kPausedLabels) patch["metadata"]["labels"][label] = deploy;
  outbox_.push({.gvr = kNodes, .key = {"", node}, .body = patch.dump()});
}

}  // namespace gso::sim
