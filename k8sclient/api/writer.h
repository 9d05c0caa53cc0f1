// Writer: the writing verbs of the Kubernetes API, and what they take. Only the executor, the recorder of Events, the
// election and the commands that change something are given one. client.h implements it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

// What a write is for, in the order in which a plan sends them. Each kind has places of its own (ClientOptions): writes
// of one kind that hang, or that the server refuses, delay none of another.
enum class WriteKind : std::uint8_t {
  record,  // What other writes rest on.
  object,  // What is changed.
  status,  // What is said about it.
  event,
};
inline constexpr std::size_t kWriteKinds = 4;

struct WriteOptions {
  WriteOptions() = default;  // No aggregate: see object.h.
  MonoTime deadline = MonoTime::never();
  Channel channel = Channel::unary;
  WriteKind kind = WriteKind::object;
  std::string subresource;  // "status", "scale", …; empty for the object itself.
  // Consulted just before each attempt is handed to the transport, and before the transport sends one a second time
  // (HttpRequest::before_resend): the lease check happens then. Its error ends the call unsent. Copied.
  std::function<Result<void>()> before_send;
  bool force = false;  // apply() only: take over fields that another manager owns.
  // The answer is the object's metadata alone (PartialObjectMetadata) where the server offers that: a Node of 50 KB is
  // not sent back to say its new resourceVersion.
  bool metadata_only = false;
  std::optional<int> max_retries;  // Empty: ClientOptions::max_retries. 0: the caller tries again by itself.
};

struct DeleteOptions {
  DeleteOptions() = default;     // No aggregate: see object.h.
  std::string uid;               // Preconditions; empty for none.
  std::string resource_version;  // A mismatch is `conflict`.
  std::optional<std::int64_t> grace_period_seconds;
  std::string propagation_policy;  // "Background", "Foreground", "Orphan"; empty: the kind's default.
};

class Writer {
 public:
  virtual ~Writer() = default;

  // Writes return the object as the server stored it.
  virtual boost::asio::awaitable<Result<std::string>> create(Gvr gvr, std::string ns, std::string json,
                                                             WriteOptions options = {}) = 0;
  virtual boost::asio::awaitable<Result<std::string>> update(Gvr gvr, ObjectKey key, std::string json,
                                                             WriteOptions options = {}) = 0;
  virtual boost::asio::awaitable<Result<std::string>> merge_patch(Gvr gvr, ObjectKey key, std::string json,
                                                                  WriteOptions options = {}) = 0;
  // Server-side apply under the field manager; `json` carries apiVersion, kind and metadata.name.
  virtual boost::asio::awaitable<Result<std::string>> apply(Gvr gvr, ObjectKey key, std::string json,
                                                            WriteOptions options = {}) = 0;
  virtual boost::asio::awaitable<Result<void>> remove(Gvr gvr, ObjectKey key, DeleteOptions preconditions = {},
                                                      WriteOptions options = {}) = 0;
  // policy/v1 Eviction of a pod. `too_many_requests` when a PodDisruptionBudget refuses; that answer is never retried
  // here (the planner decides when to ask again).
  virtual boost::asio::awaitable<Result<void>> evict(ObjectKey pod, DeleteOptions preconditions = {},
                                                     WriteOptions options = {}) = 0;
};

}  // namespace k8s
