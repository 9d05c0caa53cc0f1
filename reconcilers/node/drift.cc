// See drift.h.
#include "reconcilers/node/drift.h"

#include "reconcilers/model/labels.h"

namespace gso {

std::string_view baseline_excuse(const NodeAssessment& a) {
  switch (a.at_install) {
    case AtInstall::drifted:
      return kPreexistingDrift;
    case AtInstall::unproven:
      return a.verified.serving ? kUnproven : std::string_view();
    case AtInstall::shown:
      break;
  }
  return {};
}

}  // namespace gso
