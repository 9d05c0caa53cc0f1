// What plans from views that are not current (World::stale_views): nothing new is started, and nothing is deleted by
// what they show. What is in progress continues by lists, which are made while a watch fails.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// The first view that is not current and that decisions about operands of this namespace rest on; null: all are
// current.
[[nodiscard]] const StaleView* stale_view_of(const Snapshot& s, std::string_view ns);
// For people: which watch, and since when.
[[nodiscard]] std::string describe(const StaleView& stale);
// A finding for each view that is to be reported.
void report_stale_views(const Snapshot& s, Plan& plan);

}  // namespace gso
