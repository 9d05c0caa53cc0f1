// Bearer tokens: a fixed one, and one in a file that is re-read while it is used. Exec plugins: exec_credential.h.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// --- Acting as another user: the `as` fields of a kubeconfig user, as headers of every request.

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

// A token that never changes.
[[nodiscard]] std::shared_ptr<CredentialSource> make_static_token(std::string token);

// How long a token read from a file is used: client-go's period.
inline constexpr Duration kTokenFilePeriod = std::chrono::minutes(1);

// A token in a file (a ServiceAccount's projected token, kubeconfig's tokenFile), read at the first use, then once a
// minute and after every 401. When the file cannot be read the last token is used on, until the server refuses it;
// `fallback` is the token before the first successful read, empty for none. `clock` must outlive the source.
[[nodiscard]] std::shared_ptr<CredentialSource> make_token_file(std::string path, Clock* clock,
                                                                std::string fallback = {});

}  // namespace k8s
