#include "controller/writes/chain_pool.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"

namespace gso {

boost::asio::awaitable<void> ChainPool::add(Chain chain, Run run) {
  const auto executor = co_await boost::asio::this_coro::executor;
  waiting_.push_back({std::move(chain), std::move(run)});
  begin_waiting(executor);
}

void ChainPool::begin_waiting(const boost::asio::any_io_executor& executor) {
  while (!waiting_.empty() && running_.size() < places_()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    running_.emplace(next.chain.subject, next.chain);
    tasks_.spawn(executor, run_to_end(executor, std::move(next)));
  }
}

boost::asio::awaitable<void> ChainPool::run_to_end(boost::asio::any_io_executor executor, Waiting next) {
  // Also when the chain is cancelled or throws: its place and its subject are free again.
  struct Leaves {
    ChainPool* pool;
    std::string subject;
    ~Leaves() { pool->running_.erase(subject); }
  };
  {
    const Leaves leaves{this, next.chain.subject};
    co_await next.run(std::move(next.chain));
  }
  begin_waiting(executor);
}

bool ChainPool::has(const std::string& subject) const {
  return running_.contains(subject) ||
         std::ranges::any_of(waiting_, [&](const Waiting& waiting) { return waiting.chain.subject == subject; });
}

std::vector<Chain> ChainPool::take_back() {
  std::vector<Chain> out;
  for (Waiting& waiting : waiting_) out.push_back(std::move(waiting.chain));
  waiting_.clear();
  return out;
}

void ChainPool::cancel() {
  waiting_.clear();
  tasks_.cancel();
}

namespace {

// spec.policy of a SharingRollout; empty if it cannot be read.
std::string policy_in(const std::string& rollout_json) {
  const nlohmann::json rollout = nlohmann::json::parse(rollout_json, nullptr, false);
  const nlohmann::json::json_pointer policy("/spec/policy");
  if (!rollout.is_object() || !rollout.contains(policy) || !rollout[policy].is_string()) return {};
  return rollout[policy].get<std::string>();
}

// The policy that the record belongs to; empty: none, or unknown.
std::string policy_of(const PlannedAction& record) {
  if (const auto* finalizers = std::get_if<PatchFinalizers>(&record.action)) return finalizers->object.name;
  const auto* create = std::get_if<CreateObject>(&record.action);
  if (create == nullptr) return {};
  return create->object.kind == "SharingPolicy" ? create->object.name : policy_in(create->json);
}

// The policy of the change that the chain begins or continues; empty: none, or unknown.
std::string policy_of(const Chain& chain, const World& world) {
  for (const PlannedAction& step : chain.steps) {
    const auto* patch = std::get_if<PatchNode>(&step.action);
    if (patch == nullptr) continue;
    const auto begun = patch->set_annotations.find(std::string(kChangeAnnotation));
    if (begun == patch->set_annotations.end()) continue;
    const k8s::Result<NodeChange> change = parse_change(begun->second);
    return change ? change->policy : std::string();
  }
  const Node* node = world.nodes.find(chain.node);
  const std::shared_ptr<const NodeChange> change = node == nullptr ? nullptr : change_of(*node);
  return change == nullptr ? std::string() : change->policy;
}

}  // namespace

bool is_record(const Action& action) {
  return std::holds_alternative<CreateObject>(action) || std::holds_alternative<WriteConfigMap>(action) ||
         std::holds_alternative<PatchFinalizers>(action);
}

void UnwrittenRecords::add(const PlannedAction& record) {
  if (!is_record(record.action)) return;
  std::string policy = policy_of(record);
  if (policy.empty()) {
    all_ = true;
  } else {
    policies_.insert(std::move(policy));
  }
}

bool UnwrittenRecords::hold(const Chain& chain, const World& world) const {
  if (!chain.disruptive()) return false;
  if (all_ || policies_.empty()) return all_;
  const std::string policy = policy_of(chain, world);
  return policy.empty() || policies_.contains(policy);
}

}  // namespace gso
