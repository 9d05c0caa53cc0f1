#include "controller/writes/write_queue.h"

#include "k8sclient/value/error.h"

namespace gso {

void WriteQueue::add(const boost::asio::any_io_executor& executor, k8s::WriteKind kind, Chain chain, Run run) {
  of(kind).waiting.push_back({std::move(chain), std::move(run)});
  begin_waiting(executor, kind);
}

void WriteQueue::begin_waiting(const boost::asio::any_io_executor& executor, k8s::WriteKind kind) {
  Line& line = of(kind);
  while (!line.waiting.empty() && line.running.size() < places_(kind)) {
    Waiting next = std::move(line.waiting.front());
    line.waiting.pop_front();
    line.running.emplace(next.chain.subject, next.chain);
    tasks_.spawn(executor, run_to_end(executor, kind, std::move(next)));
  }
}

boost::asio::awaitable<void> WriteQueue::run_to_end(boost::asio::any_io_executor executor, k8s::WriteKind kind,
                                                    Waiting next) {
  {
    // Also when the chain is cancelled or throws: its place and its subject are free again.
    const k8s::AtEnd leaves([line = &of(kind), subject = next.chain.subject] { line->running.erase(subject); });
    co_await next.run(std::move(next.chain));
  }
  begin_waiting(executor, kind);
}

bool WriteQueue::has(k8s::WriteKind kind, const std::string& subject) const {
  const Line& line = of(kind);
  return line.running.contains(subject) ||
         std::ranges::any_of(line.waiting, [&](const Waiting& waiting) { return waiting.chain.subject == subject; });
}

std::vector<Chain> WriteQueue::take_back(k8s::WriteKind kind) {
  std::vector<Chain> out;
  for (Waiting& waiting : std::exchange(of(kind).waiting, {})) out.push_back(std::move(waiting.chain));
  return out;
}

void WriteQueue::cancel() {
  for (Line& line : lines_) line.waiting.clear();
  tasks_.cancel();
}

}  // namespace gso
