#pragma once
// Which seeded mistake is made in this process, and which could have been: mutate.py builds many into one program.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace gso_mistakes {

/// $GSODEV_MISTAKE is the number of the mistake to make. $GSODEV_REACHED names a file in which byte N becomes 1 as soon
/// as control reaches the function of mistake N: shared memory, so that processes that are killed count as well.
class Switch {
 public:
  Switch() {
    if (const char* number = ::getenv("GSODEV_MISTAKE")) made_ = ::atoi(number);
    const char* path = ::getenv("GSODEV_REACHED");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0) return;
    if (void* bytes = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::ftruncate(file, kMost) == 0 && bytes != MAP_FAILED) {
      reached_ = static_cast<char*>(bytes);
    }
    ::close(file);
  }
  /// `number` is below kMost.
  bool is_made(int number) {
    if (reached_ != nullptr) reached_[number] = 1;
    return made_ == number;
  }
  static constexpr int kMost = 8192;  // As in switches.py.

 private:
  int made_ = 0;
  char* reached_ = nullptr;
};

constexpr bool is_made(int number) {
  if consteval {
    return false;
  } else {
    static Switch the_switch;
    return the_switch.is_made(number);
  }
}

}  // namespace gso_mistakes
