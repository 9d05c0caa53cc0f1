#include "reconcilers/checks/kai_rule.h"

namespace gso {

bool excludes_kai(const Profile* profile) {
  return profile != nullptr && profile->strategy() != Strategy::none;
}

}  // namespace gso
