// The options by which the running operator plans, as its state ConfigMap has them for the commands of people: without
// them `status` would name a budget or a settle period that is not the operator's.
#pragma once

#include <string>

#include "controller/config/options.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// The planned_by options that differ from their defaults: {"settle-period":"1m0s"}. Empty: none.
[[nodiscard]] std::string print_operator_options(const Options& options);

// The settings of the operator whose state ConfigMap is in `world`, for a command that would judge by `own`: `own`
// where that ConfigMap says nothing. Namespace, name of the ConfigMap and what only a command asks for stay. Options
// that this release does not know, and values that it does not take, are left out.
[[nodiscard]] PlannerSettings settings_of_operator(const World& world, const PlannerSettings& own);

}  // namespace gso
