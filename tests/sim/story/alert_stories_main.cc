// gso-alert-stories RULES DIR: tells the stories of alerts in virtual time and writes, for each, a test for promtool
// that the rules fire exactly the alerts that belong to it.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "tests/sim/story/alerts/alert_stories.h"
#include "tests/sim/story/metrics_recorder.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim {
namespace {

constexpr int kInterval = 30;  // Seconds between two scrapes.

bool record(const AlertStory& alert, const std::string& rules, const std::string& folder) {
  MetricsRecorder recorder;
  VirtualWorld world(alert.story.nodes(true), judged_by(alert.story));
  const std::string wrong = tell_in(world, alert.story, world.stage_options(), std::chrono::seconds(kInterval),
                                    [&] { recorder.scrape(world.op.metrics_page()); });
  if (!wrong.empty()) {
    std::cerr << alert.story.name << ": " << wrong << "\n";
    return false;
  }
  std::ofstream file(folder + "/" + alert.story.name + ".yaml");
  file << recorder.promtool_test(alert.story.name, rules, kInterval, alert.fires);
  std::cout << alert.story.name << ": " << recorder.scrapes() << " scrapes\n";
  return static_cast<bool>(file);
}

int record_all(const std::string& rules, const std::string& folder) {
  bool all = true;
  for (const AlertStory& alert : alert_stories()) all = record(alert, rules, folder) && all;
  return all ? 0 : 1;
}

}  // namespace
}  // namespace gso::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // The virtual world reports its own failures so.
  if (argc != 3) {
    std::cerr << "usage: gso-alert-stories RULES DIR\n";
    return 2;
  }
  return gso::sim::record_all(argv[1], argv[2]);
}
