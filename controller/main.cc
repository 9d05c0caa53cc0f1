// Entry point of the gpu-sharing-operator binary: see cli.h for the commands.
#include <fcntl.h>
#include <malloc.h>

#include <csignal>
#include <exception>
#include <ios>
#include <iostream>
#include <string>
#include <vector>

#include "controller/cli/cli.h"

namespace {

// A descriptor that the caller has closed would be given to the next file or connection, which then gets what is meant
// for stdout. Nothing can be written to the ones that stand in for it, so that a failed write is noticed.
void keep_standard_descriptors() {
  for (const int descriptor : {0, 1, 2})
    if (fcntl(descriptor, F_GETFD) == -1) (void)open("/dev/null", O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  // Through stdio a write that a signal interrupts (a terminal that has another size, Ctrl-Z) would fail, and nothing
  // would be written after it: a live view could not even give the terminal back.
  std::ios::sync_with_stdio(false);
  // A peer that closes its end is an error of one request, not of the process.
  std::signal(SIGPIPE, SIG_IGN);
  // One thread allocates; libcurl's resolver threads must not each keep an arena. Buffers of lists go back at once.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);
  mallopt(M_TRIM_THRESHOLD, 256 * 1024);
  try {
    return gso::run_cli(std::vector<std::string>(argv + 1, argv + argc), std::cin, std::cout, std::cerr, argv[0]);
  } catch (const std::exception& e) {
    std::cerr << "gpu-sharing-operator: internal error: " << e.what() << "\n";
    return 1;
  }
}
