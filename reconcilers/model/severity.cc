#include "reconcilers/model/severity.h"

namespace gso {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      break;
  }
  return "info";
}

}  // namespace gso
