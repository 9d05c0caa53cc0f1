// Metrics: counters, gauges and histograms, rendered as Prometheus text or OpenMetrics. Names and labels follow
// controller-runtime and client-go where they have one; the operator's own start with gpusharing_. The list is in
// metrics_catalog.cc.
//
//   Metrics metrics;                                   // knows every family of the catalog
//   metrics.add("workqueue_adds_total", {{"name", "fleet"}});
//   std::string page = metrics.render(Metrics::Format::prometheus);
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"

namespace gso {

// As metrics count time.
[[nodiscard]] inline double in_seconds(k8s::Duration time) {
  return std::chrono::duration<double>(time).count();
}

class Metrics {
 public:
  // In the order of the catalog's label names.
  using Labels = std::vector<std::pair<std::string, std::string>>;
  enum class Type { counter, gauge, histogram };
  enum class Format { prometheus, openmetrics };

  struct Family {
    std::string_view name;  // Counters end in _total.
    Type type = Type::gauge;
    std::string_view labels;  // Their names, separated by commas.
    std::string_view help;
    std::span<const double> buckets = {};  // Upper bounds, ascending, without +Inf. Histograms only.
    [[nodiscard]] std::vector<std::string> label_names() const;
  };

  Metrics();  // With the families of the catalog.

  // A name, a type or labels other than the catalog's are a programming error, which must not end an operator in the
  // middle of a rollout: the value is dropped, and `report` hears of it once.
  void on_misuse(std::function<void(const std::string& what)> report) { report_misuse_ = std::move(report); }
  [[nodiscard]] const std::set<std::string, std::less<>>& misuses() const { return misuses_; }
  // Counters only grow.
  void add(std::string_view name, const Labels& labels = {}, double amount = 1);
  void set(std::string_view name, const Labels& labels, double value);
  template <std::integral Count>
  void set(std::string_view name, const Labels& labels, Count count) {
    set(name, labels, static_cast<double>(count));
  }
  void observe(std::string_view name, const Labels& labels, double value);
  // Drops every series of a gauge family, before it is filled anew (nodes by state).
  void clear(std::string_view name);
  // The value of one series: counters and gauges; a histogram's count. 0 when it does not exist.
  [[nodiscard]] double value(std::string_view name, const Labels& labels = {}) const;

  // Called at the start of render(): for values that are cheaper to compute than to maintain.
  void on_render(std::function<void(Metrics&)> fill) { fills_.push_back(std::move(fill)); }
  void forget_fills() { fills_.clear(); }

  [[nodiscard]] std::string render(Format format);
  [[nodiscard]] static std::string_view content_type(Format format);
  [[nodiscard]] static std::string_view type_name(Type type);  // "counter"

 private:
  struct Series {
    double value = 0;                    // Histograms: the sum.
    std::vector<std::uint64_t> buckets;  // Not cumulative; the last one is +Inf.
  };
  struct Entry {
    Family family;
    std::vector<std::string> labels;                    // Their names.
    std::map<std::vector<std::string>, Series> series;  // By label values, so the output has a stable order.
  };
  // Null: misused.
  Entry* entry(std::string_view name, Type type);
  Series* series(std::string_view name, Type type, const Labels& labels);
  void misused(std::string_view what, std::string_view name);

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::function<void(Metrics&)>> fills_;
  std::function<void(const std::string& what)> report_misuse_ = [](const std::string&) {};
  std::set<std::string, std::less<>> misuses_;
};

// Every family that the operator exports.
[[nodiscard]] std::span<const Metrics::Family> metrics_catalog();

}  // namespace gso
