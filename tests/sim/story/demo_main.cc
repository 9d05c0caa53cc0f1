// gso-demo: the long story alone, so that it is built soon.
#include "tests/sim/story/story_command.h"

int main(int argc, char** argv) {
  return gso::sim::story_command(argc, argv, nullptr);
}
