#include "tests/sim/story/short_story.h"

#include <cstdio>

namespace gso::sim {

boost::asio::awaitable<std::string> tell_story(Scene* scene, const ShortStory* story) {
  co_await scene->open();
  co_await story->tell(scene);
  std::string wrong = scene->failure();
  if (wrong.empty()) wrong = scene->invariant();
  co_return wrong;
}

std::vector<NodeSpec> alike(const std::string& prefix, int count, const std::vector<Gpu>& gpus) {
  std::vector<NodeSpec> nodes;
  for (int i = 1; i <= count; ++i) {
    char number[16];
    std::snprintf(number, sizeof number, "-%02d", i);
    nodes.push_back({.name = prefix + number, .gpus = gpus});
  }
  return nodes;
}

std::vector<NodeSpec> a100s(int count) {
  return alike("a100", count, {a100(), a100()});
}

}  // namespace gso::sim
