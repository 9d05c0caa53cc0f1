// Sim: an io_context on simulated time, and a way to run one coroutine to its end in a test.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "k8sclient/clock.h"
#include "tests/sim/sim_clock.h"

namespace gso {

struct Sim {
  boost::asio::io_context io{1};
  sim::SimClock clock{io, *k8s::parse_rfc3339("2026-01-01T00:00:00Z")};

  // Starts a coroutine; the flag is set when it has ended. What it throws fails the test.
  std::shared_ptr<bool> start(boost::asio::awaitable<void> task) {
    auto ended = std::make_shared<bool>(false);
    boost::asio::co_spawn(io, std::move(task), [ended](const std::exception_ptr& error) {
      *ended = true;
      if (error != nullptr) {
        try {
          std::rethrow_exception(error);
        } catch (const std::exception& e) {
          ADD_FAILURE() << "the coroutine threw: " << e.what();
        }
      }
    });
    return ended;
  }
  // Runs one coroutine to its end, within an hour of simulated time, and returns its result.
  template <class T>
  T run(boost::asio::awaitable<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    auto ended = start(keep(std::move(task), slot));
    EXPECT_TRUE(clock.run_until([&] { return *ended; }, std::chrono::hours(1))) << "the coroutine did not end";
    return std::move(**slot);
  }

 private:
  template <class T>
  static boost::asio::awaitable<void> keep(boost::asio::awaitable<T> task, std::shared_ptr<std::optional<T>> slot) {
    T value = co_await std::move(task);
    slot->emplace(std::move(value));
  }
};

}  // namespace gso
