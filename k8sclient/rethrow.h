// How a coroutine without anybody who awaits it reports a failure: `asio::co_spawn(executor, task(), k8s::kRethrow)`.
// asio::detached would drop the exception, and with it the work (a timer that nobody sets again, a pipe that nobody
// reads). With this one it leaves through io_context::run(), which ends the process with its message. Nothing of this
// project throws for an error that can be expected, so what arrives here is a bug or a machine without memory.
//
// And how a destructor does work that can throw when memory is short: `never_throw([&] { … })`. Out of a destructor an
// exception would end the process at once, with the Lease held; what was to be released stays until its deadline.
#pragma once

#include <exception>

namespace k8s {

struct Rethrow {
  void operator()(const std::exception_ptr& error) const {
    if (error != nullptr) std::rethrow_exception(error);
  }
};
inline constexpr Rethrow kRethrow;

template <class Work>
void never_throw(const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& short_of_memory) {
    static_cast<void>(short_of_memory);
  }
}

}  // namespace k8s
