// EndCounter: counts what ends side by side, for whoever waits for most of it and leaves behind what is slower.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>

#include "k8sclient/clock.h"

namespace gso {

// One thread only.
class EndCounter {
 public:
  explicit EndCounter(k8s::Clock* clock);
  // Something has ended.
  void note();
  // Waits until one more ends. False: none has ended within the patience.
  boost::asio::awaitable<bool> one_more(k8s::Duration patience);

 private:
  k8s::Clock* clock_;
  std::uint64_t ended_ = 0;
  std::unique_ptr<k8s::Signal> changed_;
};

}  // namespace gso
