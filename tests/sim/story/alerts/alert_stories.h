// Stories of hours, told in virtual time while the operator's metrics are recorded: promtool then replays the chart's
// alerts against the recordings (tests/chart/chart_render_test.sh).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/sim/story/short_story.h"

namespace gso::sim {

struct AlertStory {
  ShortStory story;
  std::set<std::string> fires;  // The alerts that fire at some time of it, and no others; none in a healthy one.
};
[[nodiscard]] const std::vector<AlertStory>& alert_stories();

}  // namespace gso::sim
