#include "reconcilers/partitioning/mark.h"

#include <nlohmann/json.hpp>

#include "k8sclient/value/time.h"
#include "reconcilers/model/labels.h"

namespace gso {

std::string print_mark(const PartitioningMark& mark) {
  nlohmann::ordered_json out{
      {"v", PartitioningMark::kVersion}, {"key", mark.key}, {"moved", k8s::format_time(mark.moved)}};
  if (!mark.good.empty()) out["good"] = mark.good;
  if (!mark.before.empty()) out["before"] = mark.before;
  if (mark.labelled) out["labelled"] = true;
  if (!mark.failed.empty()) out["failed"] = mark.failed;
  if (mark.failures > 0) out["failures"] = mark.failures;
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

PartitioningMark mark_of(const Node& node) {
  PartitioningMark out;
  const auto text = node.meta.annotations.get(kPartitioningAnnotation);
  if (!text) return out;
  const auto read = nlohmann::json::parse(*text, nullptr, false);
  if (!read.is_object()) return out;
  const auto string_at = [&](const char* field) {
    const auto at = read.find(field);
    return at != read.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const auto version = read.find("v");
  if (version == read.end() || *version != PartitioningMark::kVersion) return out;
  out.key = string_at("key");
  out.good = string_at("good");
  out.before = string_at("before");
  out.failed = string_at("failed");
  const auto labelled = read.find("labelled");
  out.labelled = labelled != read.end() && *labelled == true;
  if (const auto moved = k8s::parse_rfc3339(string_at("moved"))) out.moved = *moved;
  const auto failures = read.find("failures");
  if (failures != read.end() && failures->is_number_integer()) out.failures = failures->get<std::int64_t>();
  return out;
}

bool is_withdrawn(const Node& node, const PartitioningMark& mark) {
  return mark.labelled && node.meta.labels.get(kNosPartitioning) == "mps" &&
         node.meta.labels.get(kNosPartitioningBefore) != "mps";
}

}  // namespace gso
