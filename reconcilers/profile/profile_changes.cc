#include "reconcilers/profile/profile_changes.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace gso {

namespace {

using Fields = std::map<std::string, std::string>;

void add_section(const char* name, const std::optional<SharingSection>& section, Fields& out) {
  if (!section) return;
  const std::string path = fmt::format("sharing.{}", name);
  if (section->rename_by_default) out[path + ".renameByDefault"] = "true";
  if (section->fail_requests_greater_than_one)
    out[path + ".failRequestsGreaterThanOne"] = *section->fail_requests_greater_than_one ? "true" : "false";
  std::map<std::string, int> seen;
  for (const ReplicatedResource& resource : section->resources) {
    // A duplicate counts for GFD and the plugin in different ways.
    const int number = ++seen[resource.name];
    const std::string again = number > 1 ? fmt::format("#{}", number) : std::string();
    out[fmt::format("{}.resources[{}{}].replicas", path, resource.name, again)] = std::to_string(resource.replicas);
  }
}

Fields fields_of(const Profile& profile) {
  Fields out = profile.settings;
  if (profile.mig_strategy != "none") out["flags.migStrategy"] = profile.mig_strategy;
  add_section("mps", profile.mps, out);
  add_section("timeSlicing", profile.time_slicing, out);
  return out;
}

}  // namespace

std::vector<FieldChange> profile_changes(const Profile& before, const Profile& after) {
  const Fields old_fields = fields_of(before);
  const Fields new_fields = fields_of(after);
  std::set<std::string> names;
  for (const Fields* fields : {&old_fields, &new_fields}) {
    for (const auto& [name, value] : *fields) names.insert(name);
  }
  const auto value_in = [](const Fields& fields, const std::string& name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  };
  std::vector<FieldChange> out;
  for (const std::string& name : names) {
    FieldChange change{name, value_in(old_fields, name), value_in(new_fields, name)};
    if (change.before != change.after) out.push_back(std::move(change));
  }
  return out;
}

}  // namespace gso
