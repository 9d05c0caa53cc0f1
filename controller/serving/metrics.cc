// The registry and its two text forms.
// Sources: Prometheus exposition format 0.0.4; OpenMetrics 1.0.0 (counter families lose _total, "# EOF" at the end).
#include "controller/serving/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

namespace gso {
namespace {

// Both formats escape backslash and line feed; label values the double quote too.
std::string escape(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (char c : text)
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// {a="1",le="5"}, or nothing without labels.
std::string label_text(const std::vector<std::string>& names, const std::vector<std::string>& values,
                       std::string_view le = {}) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", names[i], escape(values[i], true));
  if (!le.empty()) out += fmt::format("{}le=\"{}\"", out.empty() ? "" : ",", le);
  return out.empty() ? out : "{" + out + "}";
}

}  // namespace

std::string_view Metrics::type_name(Type type) {
  constexpr std::array<std::string_view, 3> kNames{"counter", "gauge", "histogram"};
  return kNames.at(static_cast<std::size_t>(type));
}

std::vector<std::string> Metrics::Family::label_names() const {
  std::vector<std::string> out;
  for (const auto label : std::views::split(labels, ',')) out.emplace_back(label.begin(), label.end());
  return out;
}

Metrics::Metrics() {
  for (const Family& family : metrics_catalog()) entries_.emplace(family.name, Entry{family, family.label_names(), {}});
}

void Metrics::misused(std::string_view what, std::string_view name) {
  const auto [noted, fresh] = misuses_.insert(fmt::format("{}: {}", name, what));
  if (fresh) report_misuse_(*noted);
}

Metrics::Entry* Metrics::entry(std::string_view name, Type type) {
  const auto it = entries_.find(name);
  if (it != entries_.end() && it->second.family.type == type) return &it->second;
  misused(it == entries_.end() ? "no such family" : "used as another type", name);
  return nullptr;
}

Metrics::Series* Metrics::series(std::string_view name, Type type, const Labels& labels) {
  Entry* const found = entry(name, type);
  if (found == nullptr) return nullptr;
  const auto& names = found->labels;
  const bool fits = std::equal(labels.begin(), labels.end(), names.begin(), names.end(),
                               [](const auto& label, const std::string& key) { return label.first == key; });
  if (!fits) {
    misused("labels differ from the catalog", name);
    return nullptr;
  }
  std::vector<std::string> values;
  values.reserve(labels.size());
  for (const auto& [key, value] : labels) values.push_back(value);
  auto [it, fresh] = found->series.try_emplace(std::move(values));
  if (fresh && type == Type::histogram) it->second.buckets.resize(found->family.buckets.size() + 1);
  return &it->second;
}

void Metrics::add(std::string_view name, const Labels& labels, double amount) {
  if (Series* const counter = series(name, Type::counter, labels)) counter->value += std::max(amount, 0.0);
}

void Metrics::set(std::string_view name, const Labels& labels, double value) {
  if (Series* const gauge = series(name, Type::gauge, labels)) gauge->value = value;
}

void Metrics::observe(std::string_view name, const Labels& labels, double value) {
  Series* const target = series(name, Type::histogram, labels);
  if (target == nullptr) return;
  const auto& bounds = entries_.find(name)->second.family.buckets;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  ++target->buckets[static_cast<std::size_t>(bucket)];
  target->value += value;
}

void Metrics::clear(std::string_view name) {
  if (Entry* const gauge = entry(name, Type::gauge)) gauge->series.clear();
}

double Metrics::value(std::string_view name, const Labels& labels) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) return 0;
  std::vector<std::string> values;
  for (const auto& [key, text] : labels) values.push_back(text);
  auto it = found->second.series.find(values);
  if (it == found->second.series.end()) return 0;
  if (found->second.family.type != Type::histogram) return it->second.value;
  std::uint64_t count = 0;
  for (std::uint64_t n : it->second.buckets) count += n;
  return static_cast<double>(count);
}

std::string_view Metrics::content_type(Format format) {
  return format == Format::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                       : "text/plain; version=0.0.4; charset=utf-8";
}

std::string Metrics::render(Format format) {
  for (auto& fill : fills_) fill(*this);
  std::string out;
  for (const auto& [name, found] : entries_) {
    if (found.series.empty()) continue;
    const Family& family = found.family;
    std::string_view title = family.name;
    if (format == Format::openmetrics && family.type == Type::counter && title.ends_with("_total"))
      title.remove_suffix(6);
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", title, escape(family.help, format == Format::openmetrics), title,
                       type_name(family.type));
    for (const auto& [values, one] : found.series) {
      if (family.type != Type::histogram) {
        out += fmt::format("{}{} {}\n", family.name, label_text(found.labels, values), number(one.value));
        continue;
      }
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < one.buckets.size(); ++i) {
        count += one.buckets[i];
        const std::string le = i < family.buckets.size() ? number(family.buckets[i]) : "+Inf";
        out += fmt::format("{}_bucket{} {}\n", family.name, label_text(found.labels, values, le), count);
      }
      const std::string labels = label_text(found.labels, values);
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", family.name, labels, number(one.value), family.name, labels,
                         count);
    }
  }
  if (format == Format::openmetrics) out += "# EOF\n";
  return out;
}

}  // namespace gso
