#include "controller/writes/chain_pool.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

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

}  // namespace gso
