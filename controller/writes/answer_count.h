// AnswerCount: how many writes the API server has answered within the last second, which is what it can be given for
// the next one.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include "k8sclient/clock.h"

namespace gso {

// One thread only.
class AnswerCount {
 public:
  void note(k8s::MonoTime now) {
    forget_before(now);
    answered_.push_back(now);
  }
  [[nodiscard]] std::size_t of_last_second(k8s::MonoTime now) {
    forget_before(now);
    return answered_.size();
  }

 private:
  void forget_before(k8s::MonoTime now) {
    while (!answered_.empty() && now - answered_.front() >= std::chrono::seconds(1)) answered_.pop_front();
  }

  std::deque<k8s::MonoTime> answered_;
};

}  // namespace gso
