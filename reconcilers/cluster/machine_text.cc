#include "reconcilers/cluster/machine_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "reconcilers/model/json_access.h"

namespace gso::record_json {

bool read_time(const Json& root, const char* field, std::optional<k8s::WallTime>& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_string()) return false;
  out = k8s::parse_rfc3339(member->get_ref<const std::string&>());
  return out.has_value();
}

bool read_flag(const Json& root, const char* field, bool& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_boolean()) return false;
  out = member->get<bool>();
  return true;
}

bool read_text(const Json& root, const char* field, std::string& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr || !member->is_string()) return false;
  out = member->get<std::string>();
  return true;
}

bool read_value(const Json& value, std::string& out) {
  if (!value.is_string()) return false;
  out = value.get<std::string>();
  return true;
}

bool read_value(const Json& value, std::int64_t& out) {
  if (!value.is_number_integer()) return false;
  out = value.get<std::int64_t>();
  return true;
}

}  // namespace gso::record_json

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr std::int64_t kDriftFlag = 1;
constexpr std::int64_t kUnprovenFlag = 2;
constexpr std::int64_t kMeasuredFlag = 4;

bool read_profiles(const Json& root, std::vector<MachineRecord>& out) {
  const Json* list = member_at(root, "profiles");
  if (list == nullptr || !list->is_array()) return false;
  for (const Json& entry : *list) {
    if (!entry.is_array() || entry.size() != 3) return false;
    for (const Json& part : entry) {
      if (!part.is_string()) return false;
    }
    MachineRecord& read = out.emplace_back();
    read.config_map = k8s::Interned(entry[0].get_ref<const std::string&>());
    read.key = k8s::Interned(entry[1].get_ref<const std::string&>());
    read.revision = k8s::Interned(entry[2].get_ref<const std::string&>());
  }
  return true;
}

bool read_machine(const std::string& id, const Json& entry, const std::vector<MachineRecord>& profiles,
                  MachineId& machine, MachineRecord& out) {
  if (!read_machine_id(id, machine)) return false;
  if (!entry.is_array() || entry.size() != 3) return false;
  for (const Json& part : entry) {
    if (!is_number(part)) return false;
  }
  const auto profile = entry[0].get<std::int64_t>();
  if (profile >= std::ssize(profiles)) return false;
  if (profile >= 0) out = profiles[static_cast<std::size_t>(profile)];
  const auto flags = entry[2].get<std::int64_t>();
  out.devices = std::max<std::int64_t>(0, entry[1].get<std::int64_t>());
  out.drift = (flags & kDriftFlag) != 0;
  out.unproven = (flags & kUnprovenFlag) != 0;
  out.measured = (flags & kMeasuredFlag) != 0;
  return true;
}

}  // namespace

std::string print_machine(MachineId machine) {
  return fmt::format("{:016x}", static_cast<std::uint64_t>(machine));
}

bool read_machine_id(std::string_view text, MachineId& out) {
  std::uint64_t number = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  out = MachineId{number};
  return code == std::errc{} && rest == text.data() + text.size();
}

bool is_number(const Json& json) {
  return json.is_number_integer() && json >= -1 && json <= 1'000'000'000;
}

void MachinePrinter::add(MachineId machine, const MachineRecord& entry) {
  std::int64_t profile = -1;
  if (!entry.revision.empty()) {
    const auto [it, added] = profiles_.try_emplace({entry.config_map, entry.key, entry.revision}, std::ssize(list_));
    if (added) list_.push_back({entry.config_map.view(), entry.key.view(), entry.revision.view()});
    profile = it->second;
  }
  const std::int64_t flags =
      (entry.drift ? kDriftFlag : 0) + (entry.unproven ? kUnprovenFlag : 0) + (entry.measured ? kMeasuredFlag : 0);
  machines_[print_machine(machine)] = {profile, entry.devices, flags};
}

void MachinePrinter::print_into(Json& root) {
  root["profiles"] = std::move(list_);
  root["machines"] = std::move(machines_);
}

bool read_machines(const Json& root, std::string& wrong,
                   const std::function<void(MachineId, const MachineRecord&)>& take) {
  std::vector<MachineRecord> profiles;
  const Json* machines = member_at(root, "machines");
  wrong = "profiles must be a list of [configMap, key, revision]";
  if (!read_profiles(root, profiles)) return false;
  wrong = "machines must map ids to [profile, devices, flags]";
  if (machines == nullptr || !machines->is_object()) return false;
  for (const auto& [id, entry] : machines->items()) {
    MachineId machine{};
    MachineRecord read;
    if (!read_machine(id, entry, profiles, machine, read)) return false;
    take(machine, read);
  }
  return true;
}

}  // namespace gso
