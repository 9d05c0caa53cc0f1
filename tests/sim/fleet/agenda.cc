// The agenda's loop: run what is due, then wait for the next task or for a new one that is earlier.
#include "tests/sim/fleet/agenda.h"

#include <utility>

namespace gso::sim {

Agenda::Agenda(k8s::Clock* clock) : clock_(clock), wake_(clock->make_signal()) {}

void Agenda::at(k8s::MonoTime due, std::weak_ptr<const void> life, Task task) {
  const bool earliest = entries_.empty() || due < entries_.begin()->first;
  entries_.emplace(due, Entry{std::move(life), std::move(task)});
  if (earliest) wake_->notify();
}

void Agenda::after(k8s::Duration delay, std::weak_ptr<const void> life, Task task) {
  at(clock_->monotonic() + delay, std::move(life), std::move(task));
}

boost::asio::awaitable<void> Agenda::run() {
  while (!stopping_) {
    while (!stopping_ && !entries_.empty() && entries_.begin()->first <= clock_->monotonic()) {
      Entry entry = std::move(entries_.begin()->second);
      entries_.erase(entries_.begin());
      if (!entry.life.expired()) entry.task();
    }
    if (stopping_) break;
    const k8s::MonoTime next = entries_.empty() ? k8s::MonoTime::never() : entries_.begin()->first;
    const bool notified = co_await wake_->wait_until(next);
    (void)notified;  // Either way the loop looks at the clock and at the entries.
  }
}

void Agenda::stop() {
  stopping_ = true;
  wake_->notify();
}

}  // namespace gso::sim
