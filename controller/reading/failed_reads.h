// What a failed read means to whoever typed the command: no permission, or no server.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace gso {

// --- Explains a 403 so that it can be granted: what, to whom, and the missing rule.

// The request that was refused. `verbs`: what a rule must allow; the first one is the verb that was refused.
struct Attempt {
  std::vector<std::string> verbs{"list"};
  k8s::Gvr gvr;
  std::string ns;           // Empty: in all namespaces, or a cluster-scoped kind.
  std::string subresource;  // "status", "log"; empty: the object itself.
  std::string name = {};    // Of one object; empty: of any.
};

// A 403: 'configmaps of namespace gpu-operator cannot be listed by User "x". Missing permission: add {apiGroups: …} to
// a Role of that namespace (docs/rights.md)'. Any other error: its own text.
[[nodiscard]] std::string explain_error(const k8s::Error& error, const Attempt& attempt);
// The same of one verb on objects themselves (coroutines name no aggregates).
[[nodiscard]] std::string explain_error(const k8s::Error& error, std::string_view verb, const k8s::Gvr& gvr,
                                        const std::string& ns);

// The same as an error, of a list. `ns`: empty for all, or a cluster-scoped kind.
[[nodiscard]] std::unexpected<k8s::Error> unlisted(const k8s::Error& error, const k8s::Gvr& gvr,
                                                   const std::string& ns = {});

// Adds a line that is not there yet.
void append_unique(std::vector<std::string>& lines, std::string line);

// --- An API server that gives no answer, in one line that stays the same for as long as the outage lasts.

// No answer came, or that of something before the server that cannot reach it either.
[[nodiscard]] bool is_no_answer(const k8s::Error& error);

// A request's error without what differs from one attempt to the next: the query of its path.
[[nodiscard]] std::string without_query(std::string message);

class ServerOutage {
 public:
  // An outage that is on goes on: its time and cause are those of its first error. Only of is_no_answer().
  void failed(const k8s::Error& error, k8s::WallTime now);
  void over() { line_.clear(); }

  [[nodiscard]] bool is_on() const { return !line_.empty(); }
  // "the API server at HOST cannot be reached since TIME, and this view is older: CAUSE"; empty: no outage.
  [[nodiscard]] const std::string& line() const { return line_; }

 private:
  std::string line_;
};

}  // namespace gso
