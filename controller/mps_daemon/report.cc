#include "controller/mps_daemon/report.h"

#include <fstream>

namespace gso {

void write_report(const MpsDaemonSettings& settings, const std::string& text) {
  if (settings.report.empty()) return;
  std::ofstream out(settings.report, std::ios::binary | std::ios::trunc);
  out << text << "\n";
}

}  // namespace gso
