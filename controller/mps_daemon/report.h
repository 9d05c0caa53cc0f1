// The result of a verb, in a file that its container publishes when it ends (its termination message).
#pragma once

#include <string>

#include "controller/mps_daemon/settings.h"

namespace gso {

// Replaces the report; nothing without MpsDaemonSettings::report.
void write_report(const MpsDaemonSettings& settings, const std::string& text);

}  // namespace gso
