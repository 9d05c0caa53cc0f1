#include "tests/sim/story/restarting_operator.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace gso::sim {

namespace asio = boost::asio;

struct RestartingOperator::State {
  asio::any_io_executor executor;
  k8s::Clock* clock = nullptr;
  InProcessOperator* op = nullptr;
  OperatorSettings settings = {};
  std::function<bool(std::uint64_t)> dies = [](std::uint64_t) { return false; };
  std::uint64_t writes = 0, kills = 0;
  bool down = false;    // Killed, and not yet started again.
  bool closed = false;  // Nobody starts it again.
  std::string why = {};
};

RestartingOperator::RestartingOperator(asio::any_io_executor executor, k8s::Clock* clock, InProcessOperator* op)
    : state_(std::make_shared<State>(State{.executor = std::move(executor), .clock = clock, .op = op})) {
  op->hooks.crash_after_write = [state = std::weak_ptr(state_)](std::uint64_t, const PlannedAction&) {
    const std::shared_ptr<State> is = state.lock();
    if (is == nullptr || is->closed || !is->dies(++is->writes)) return false;
    ++is->kills;
    is->down = true;
    asio::co_spawn(is->executor, restart(is), asio::detached);
    return true;
  };
}

RestartingOperator::~RestartingOperator() {
  state_->closed = true;
}

asio::awaitable<void> RestartingOperator::restart(std::shared_ptr<State> state) {
  co_await asio::post(asio::use_awaitable);
  co_await state->op->kill();
  co_await state->clock->sleep_for(std::chrono::seconds(1));
  if (state->closed) co_return;
  const k8s::Result<void> started = state->op->start(state->settings);
  if (!started) state->why = started.error().message;
  state->down = false;
}

k8s::Result<void> RestartingOperator::start(const OperatorSettings& settings) {
  state_->settings = settings;
  return state_->op->start(settings);
}

asio::awaitable<void> RestartingOperator::kill() {
  co_await state_->op->kill();
}

std::string RestartingOperator::trouble() {
  if (state_->down) return {};
  return state_->why.empty() ? state_->op->trouble() : state_->why;
}

void RestartingOperator::dies_when(std::function<bool(std::uint64_t write)> dies) {
  state_->dies = std::move(dies);
  state_->writes = state_->kills = 0;
}

std::uint64_t RestartingOperator::writes() const {
  return state_->writes;
}

std::uint64_t RestartingOperator::kills() const {
  return state_->kills;
}

}  // namespace gso::sim
