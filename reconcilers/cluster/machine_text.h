// The machines of the record <-> JSON. Both the head and the shards of the record contain such a part:
//
//   "profiles": [[configMap, key, revision], …], "machines": {"<id>": [profile, devices, flags], …}
//
// where profile is an index into the list, or -1.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>

#include "reconcilers/cluster/record.h"

namespace gso {

// 16 hexadecimal digits.
[[nodiscard]] std::string print_machine(MachineId machine);
// False: the text is not such a number, and `out` is undefined.
[[nodiscard]] bool read_machine_id(std::string_view text, MachineId& out);

// A whole number from -1 to 10^9: every number of an entry is one, whatever a person has written into the record.
[[nodiscard]] bool is_number(const nlohmann::json& json);

// Collects machines, and names each profile once.
class MachinePrinter {
 public:
  void add(MachineId machine, const MachineRecord& entry);
  // Sets `profiles` and `machines`, and leaves this empty.
  void print_into(nlohmann::json& root);

 private:
  std::map<std::tuple<k8s::Interned, k8s::Interned, k8s::Interned>, std::int64_t> profiles_;
  nlohmann::json list_ = nlohmann::json::array();
  nlohmann::json machines_ = nlohmann::json::object();
};

// Calls `take` for each machine of the part. False: `wrong` has the error, and some machines might have been taken.
[[nodiscard]] bool read_machines(const nlohmann::json& root, std::string& wrong,
                                 const std::function<void(MachineId, const MachineRecord&)>& take);

}  // namespace gso
