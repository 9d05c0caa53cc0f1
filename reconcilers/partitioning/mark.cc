#include "reconcilers/partitioning/mark.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/time.h"
#include "reconcilers/model/json_access.h"
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
  return dump(out);
}

namespace {

PartitioningMark unreadable(std::string why) {
  PartitioningMark out;
  out.problem = std::move(why);
  return out;
}

// False if the field is there with another type. `out` keeps its value if it is absent.
bool read_field(const nlohmann::json& object, const char* name, std::string& out) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_string()) out = at->get<std::string>();
  return at == object.end() || at->is_string();
}
bool read_field(const nlohmann::json& object, const char* name, bool& out) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_boolean()) out = at->get<bool>();
  return at == object.end() || at->is_boolean();
}
bool read_field(const nlohmann::json& object, const char* name, std::int64_t& out) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_number_integer()) out = at->get<std::int64_t>();
  return at == object.end() || at->is_number_integer();
}

}  // namespace

PartitioningMark mark_of(const Node& node) {
  const auto text = node.meta.annotations.get(kPartitioningAnnotation);
  if (!text) return {};
  const auto read = nlohmann::json::parse(*text, nullptr, false);
  if (!read.is_object()) return unreadable("it is no JSON object");
  const auto version = read.find("v");
  if (version == read.end() || *version != PartitioningMark::kVersion)
    return unreadable(fmt::format("it does not have the version {}", PartitioningMark::kVersion));
  PartitioningMark out;
  std::string moved;
  const bool fits = read_field(read, "key", out.key) && read_field(read, "good", out.good) &&
                    read_field(read, "before", out.before) && read_field(read, "failed", out.failed) &&
                    read_field(read, "labelled", out.labelled) && read_field(read, "failures", out.failures) &&
                    read_field(read, "moved", moved);
  const auto time = k8s::parse_rfc3339(moved);
  if (!fits || !time) return unreadable(fits ? "its field moved is no time" : "a field of it has another type");
  out.moved = *time;
  return out;
}

std::string unreadable_mark_text(const std::string& node, std::string_view problem) {
  return fmt::format(
      "its annotation {} cannot be read ({}), so it is unknown which label and keys it needs, and nothing is changed "
      "there. Correct it, or remove it (kubectl annotate node {} {}-): the operator then goes on from what the node "
      "reports, and the label from before partitioning is forgotten",
      kPartitioningAnnotation, problem, node, kPartitioningAnnotation);
}

bool is_withdrawn(const Node& node, const PartitioningMark& mark) {
  return mark.labelled && node.meta.labels.get(kNosPartitioning) == "mps" &&
         node.meta.labels.get(kNosPartitioningBefore) != "mps";
}

}  // namespace gso
