// The command line of the stories: gso-demo tells the long one, gso-story short ones too (story_main.cc).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/story/story.h"

namespace gso::sim {

struct StorySettings {
  bool serve_sim = false;
  std::string kubeconfig;           // Of the story (and of the fleet).
  std::string operator_kubeconfig;  // Of the operator; the same when empty.
  std::string operator_binary;
  std::string plugin_version = "v0.20.0";
  double time_scale = 0.004;
  std::string stories;  // Short ones, in place of the long one.
  std::pair<std::size_t, std::size_t> share{1, 1};
  bool keep = false;
};

// Where a story is told.
struct StoryPlace {
  boost::asio::io_context* io = nullptr;
  k8s::Clock* clock = nullptr;
  k8s::ApiClient* client = nullptr;
  std::string operator_kubeconfig;
  std::string operator_log;
  StageOptions options;
};

// Tells short stories; the exit code.
using TellShort = int (*)(const StorySettings& settings, const StoryPlace& place);

// Prints live progress and a table of the nodes. Exit code: 0 only if every step held, 2 for wrong usage. Without
// `tell_short` there are no short stories to ask for.
[[nodiscard]] int story_command(int argc, char** argv, TellShort tell_short);

// Says why on stderr; returns 2.
int story_failure(const std::string& why);

}  // namespace gso::sim
