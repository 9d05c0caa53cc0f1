// KAI and the kubelets of a small cluster, in virtual time: a scheduler with a snapshot that lags, a binder that
// creates reservations, labels late, times out, retries, rolls back, crashes anywhere and comes back, and that syncs as
// upstream does: a reservation without consumers is deleted, running consumers without a reservation are deleted. A
// cache that lags, most of all after a crash, gives a group a second reservation; consumers see the GPU of either.
//
// Its own sync respects BindRequests (as newer KAI does), so that every consumer that it deletes for a missing
// reservation has lost it to somebody else.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/transport/transport.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/kai/kai_objects.h"
#include "tests/sim/sim_clock.h"

namespace gso::sim {

class KaiActor {
 public:
  KaiActor(boost::asio::io_context& io, SimClock& clock, ApiServer& server, std::uint64_t seed);

  // CRDs, namespaces, nodes, kai-config, the binder. Synchronous.
  void set_up();
  // Starts everything; it goes quiet six minutes later: no new pod, the binder up, no bind in progress.
  void start();
  // Nothing will change any more by itself, but for the pods that still run.
  [[nodiscard]] bool quiet() const { return quiet_ && binds_ == 0; }
  void stop() { stopped_ = true; }

  // Consumers that the binder has deleted since their last reservation was gone: "team/p-3 (group …)".
  [[nodiscard]] const std::vector<std::string>& killed() const { return killed_; }

  // --- The truth, read from the server now.
  // Why deleting this reservation now would hurt; empty: it holds its GPU for nobody.
  [[nodiscard]] std::string needed(const Json& reservation) const;
  // Reservations that nobody needs, and which are not being deleted, by name.
  [[nodiscard]] std::map<std::string, std::string> orphans() const;  // Name -> node.
  [[nodiscard]] std::size_t binds_done() const { return done_; }
  [[nodiscard]] std::size_t duplicates_made() const { return duplicates_; }

 private:
  using Task = boost::asio::awaitable<void>;
  void spawn(Task task);
  Task users();
  Task scheduler();
  Task binder();
  Task bind(std::string pod, std::uint64_t incarnation);
  Task kubelet();
  Task wait(k8s::Duration least, k8s::Duration most);
  Task crash_now_and_then();

  // `gpu`: the one that the reservation which was found or made holds.
  boost::asio::awaitable<bool> reserve(std::string pod, std::string group, std::string node, std::uint64_t incarnation,
                                       std::string* gpu);
  boost::asio::awaitable<void> run_steps(std::string pod, std::vector<std::string> groups, std::string node,
                                         std::uint64_t incarnation, bool* bound);
  void show_gpus(const Json& pod, const std::string& gpus);
  void roll_back(const std::string& pod, const std::vector<std::string>& groups);
  void fail_request(const std::string& pod);
  void sync_group(const std::string& group);
  void sync_node(const std::string& node);
  void sync_all();
  [[nodiscard]] bool up(std::uint64_t incarnation) const {
    return binder_up_ && incarnation == incarnation_ && !stopped_;
  }

  int send(k8s::Method method, const std::string& path, const Json& body, const std::string& type = "application/json");
  void patch_pod(const std::string& ns, const std::string& name, const Json& patch, const std::string& sub = "");
  void end_pod(const std::string& ns, const std::string& name, int grace);
  [[nodiscard]] std::vector<std::shared_ptr<const Json>> pods(const std::string& ns) const;
  [[nodiscard]] std::vector<std::shared_ptr<const Json>> requests() const;
  // Another reservation of its group runs.
  [[nodiscard]] bool has_another(const Json& reservation) const;
  [[nodiscard]] static std::string gpu_of(const Json& reservation);  // Empty: it has not said.
  [[nodiscard]] bool in_progress(const std::string& group) const;
  void set_binder(bool available);
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

  boost::asio::io_context& io_;
  SimClock& clock_;
  ApiServer& server_;
  const std::uint64_t seed_;
  const std::vector<std::string> nodes_{"n1", "n2"};
  std::mt19937_64 random_;
  k8s::MonoTime end_;
  std::uint64_t incarnation_ = 1;
  bool binder_up_ = true;
  bool quiet_ = false;
  bool stopped_ = false;
  int binds_ = 0;
  std::size_t done_ = 0;
  std::size_t duplicates_ = 0;
  k8s::MonoTime up_since_;
  int next_pod_ = 0;
  int next_group_ = 0;
  std::set<std::string> binding_;                       // Pods that a bind works on.
  std::map<std::string, std::set<std::string>> found_;  // Group -> pods whose bind has found its reservation.
  std::map<std::string, k8s::MonoTime> ends_;           // When the kubelet ends a running pod.
  std::vector<std::string> killed_;
};

}  // namespace gso::sim
