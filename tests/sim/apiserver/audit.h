// The audit log: one entry for each write request, and for each object that the server's own actors changed.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "k8sclient/value/object.h"
#include "k8sclient/value/time.h"

namespace gso::sim {

struct AuditEntry {
  k8s::WallTime time{};
  std::string user;
  std::string user_agent;
  std::string verb;  // create, update, patch, apply, delete, deletecollection
  k8s::Gvr gvr;
  k8s::ObjectKey key;
  std::string subresource;   // "status", "eviction", "binding", or empty.
  std::string content_type;  // Of a patch: which kind it is.
  std::string body;          // As sent.
  bool dry_run = false;
  int status = 0;  // HTTP status of the answer; 0 for the server's own actors.
  // The stored object before and after; null where there is none. Equal when the request changed nothing.
  std::shared_ptr<const nlohmann::json> before;
  std::shared_ptr<const nlohmann::json> after;

  // Something is stored differently now.
  [[nodiscard]] bool changed() const { return before != after; }
};

using AuditListener = std::function<void(const AuditEntry&)>;

}  // namespace gso::sim
