// Acting as another user: the `as` fields of a kubeconfig user, as headers of every request.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"

namespace k8s {

struct Impersonation {
  std::string user;                                                     // as
  std::string uid;                                                      // as-uid
  std::vector<std::string> groups;                                      // as-groups
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;  // as-user-extra
};

// Impersonate-User, -Uid, -Group and -Extra-KEY, as client-go writes them; none for an empty Impersonation. Errors
// (`invalid`): uid, groups or extra without a user, and control characters, which would begin another header.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> impersonation_headers(
    const Impersonation& impersonation);

}  // namespace k8s
