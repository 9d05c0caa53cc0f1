// gso-story: the long story and the short ones.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "tests/sim/story/child_operator.h"
#include "tests/sim/story/short_story_teller.h"
#include "tests/sim/story/story_command.h"

namespace gso::sim {
namespace {

namespace asio = boost::asio;

int tell_short(const StorySettings& settings, const StoryPlace& place) {
  auto stories = choose_stories(settings.stories);
  if (!stories) return story_failure(stories.error().message);
  if (settings.share.first > settings.share.second) return story_failure("--share K N: K is at most N");
  *stories = share_of(*stories, settings.share);
  ChildOperator child(place.clock, settings.operator_binary, place.operator_kubeconfig, place.operator_log);
  ShortStoryTeller teller;
  teller.client = place.client;
  teller.clock = place.clock;
  teller.child = &child;
  teller.options = place.options;
  teller.timing.scale = settings.time_scale;
  teller.act_as_controllers = settings.serve_sim;
  std::optional<ShortStoryTally> tally;
  asio::io_context* const io = place.io;
  asio::signal_set signals(*io, SIGTERM, SIGINT);
  signals.async_wait([io](const boost::system::error_code& error, int) {
    if (!error) io->stop();
  });
  asio::co_spawn(*io, tell_short_stories(teller, *stories),
                 [io, &tally](const std::exception_ptr& error, ShortStoryTally told) {
                   io->stop();
                   if (error) std::rethrow_exception(error);
                   tally = told;
                 });
  const auto begun = place.clock->monotonic();
  io->run();
  if (!tally) return story_failure("interrupted");
  std::printf("%zu of %zu stories held, in %.1f s\n", tally->held, stories->size(),
              std::chrono::duration<double>(place.clock->monotonic() - begun).count());
  return tally->held == stories->size() ? 0 : 1;
}

}  // namespace
}  // namespace gso::sim

int main(int argc, char** argv) {
  return gso::sim::story_command(argc, argv, &gso::sim::tell_short);
}
