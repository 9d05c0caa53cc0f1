// Settings of a profile in a component's flags and environment variables.
#pragma once

#include <map>
#include <string>

#include "reconcilers/cluster/operand.h"

namespace gso {

// By the variable's name; the flag of that name overrides the variable. See Operand::overrides.
[[nodiscard]] std::map<std::string, Operand::Override> overrides_of(const ContainerSpec& container,
                                                                    Component component);

}  // namespace gso
