// An in-memory Kubernetes API server at the level of HTTP requests: the semantics of kube-apiserver v1.36 for the
// kinds that this project meets, CustomResourceDefinitions included. Time is a k8s::Clock, so it runs on simulated
// time (sim_clock.h) and on real time (http_frontend.h) alike.
//
//   ApiServer server(io.get_executor(), clock);
//   InProcessTransport operator_transport(server, clock, {.user = "system:serviceaccount:gpu:operator"});
//
// What differs from the real server is listed in README.md of this folder.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/audit.h"
#include "tests/sim/apiserver/request.h"
#include "tests/sim/apiserver/storage.h"
#include "tests/sim/apiserver/watch.h"

namespace gso::sim {

struct ApiServerOptions {
  StorageLimits limits;
  // New Nodes get the taint node.kubernetes.io/not-ready:NoSchedule, which a node controller must take away.
  bool taint_new_nodes = false;
  // ServiceAccount `default` in every namespace, as the controller-manager makes it.
  bool default_service_accounts = true;
  // How long the garbage collector and the namespace controller take to notice.
  k8s::Duration collector_delay = std::chrono::milliseconds(100);
  std::uint64_t seed = 1;  // Of uids and generated names.
};

// One-thread only, like everything on its executor.
class ApiServer {
 public:
  ApiServer(boost::asio::any_io_executor executor, k8s::Clock& clock, ApiServerOptions options = {});
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Answers any request that is no watch.
  [[nodiscard]] k8s::HttpResponse handle(const k8s::HttpRequest& request, const RequestContext& context);
  // A watch request that is in order gives a stream, anything else an answer.
  using WatchAnswer = std::variant<k8s::HttpResponse, std::shared_ptr<WatchStream>>;
  [[nodiscard]] WatchAnswer watch(const k8s::HttpRequest& request, const RequestContext& context);
  // True for a GET with watch=true of a resource.
  [[nodiscard]] static bool is_watch(const k8s::HttpRequest& request);

  // Called for every write, after it happened.
  void add_audit_listener(AuditListener listener);

  // Shortcuts for set-up and checks of tests and of the fleet's actors. They go around HTTP, faults and audit, but
  // not around the rules of reading.
  [[nodiscard]] std::optional<nlohmann::json> get(const k8s::Gvr& gvr, const k8s::ObjectKey& key) const;
  [[nodiscard]] std::vector<nlohmann::json> list(const k8s::Gvr& gvr, const std::string& ns = "") const;
  // The same without copies, for frequent checks of large kinds; built-in kinds only.
  [[nodiscard]] std::vector<std::shared_ptr<const nlohmann::json>> view(const k8s::Gvr& gvr,
                                                                        const std::string& ns = "") const;
  // The last resourceVersion given out.
  [[nodiscard]] std::uint64_t revision() const;
  // Forgets past events of a bucket ("pods", "daemonsets.apps"; all when empty): older watches and continue tokens
  // are answered with 410.
  void compact(const std::string& bucket = "");
  // The server comes back with a store that has lost what was written in the last `age`: objects and resourceVersions
  // are what they were, and all watches break.
  void forget_last(k8s::Duration age);
  [[nodiscard]] std::size_t open_watches() const;
  [[nodiscard]] k8s::Clock& clock();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gso::sim
