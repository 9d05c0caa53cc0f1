// What Prometheus would have scraped from the operator during a story, as the input of `promtool test rules`.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gso::sim {

class MetricsRecorder {
 public:
  // One scrape, in Prometheus' text format; nullopt: nobody answers.
  void scrape(const std::optional<std::string>& page);
  [[nodiscard]] std::size_t scrapes() const { return scrapes_; }
  // A test that the rules of `rule_file` fire exactly these alerts during the story. `interval`: between two scrapes,
  // in seconds.
  [[nodiscard]] std::string promtool_test(const std::string& name, const std::string& rule_file, int interval,
                                          const std::set<std::string>& fires) const;

 private:
  std::map<std::string, std::vector<std::string>> series_;  // "name{labels}" -> a value for each scrape.
  std::size_t scrapes_ = 0;
};

}  // namespace gso::sim
