// Agenda: what the fleet will do and when. One coroutine on the Clock runs the tasks, so every actor is plain code
// without coroutines of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>

#include "k8sclient/clock.h"

namespace gso::sim {

class Agenda {
 public:
  using Task = std::function<void()>;

  explicit Agenda(k8s::Clock* clock);

  // Runs `task` once, at or after `due`, unless `life` has expired by then. Tasks with equal times run in the order
  // they were added. A task may add tasks.
  void at(k8s::MonoTime due, std::weak_ptr<const void> life, Task task);
  void after(k8s::Duration delay, std::weak_ptr<const void> life, Task task);

  // Runs tasks until stop().
  boost::asio::awaitable<void> run();
  void stop();

 private:
  struct Entry {
    std::weak_ptr<const void> life;
    Task task;
  };
  k8s::Clock* clock_;
  std::unique_ptr<k8s::Signal> wake_;
  std::multimap<k8s::MonoTime, Entry> entries_;
  bool stopping_ = false;
};

}  // namespace gso::sim
