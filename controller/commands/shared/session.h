// What the commands that talk to a cluster share: one connection, a loop that runs a coroutine over it, the notice of a
// long wait, and the signals that end them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "controller/config/options.h"
#include "k8sclient/api/client.h"
#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"

namespace gso {

// One line on stderr when a person's command waits for the API server for more than a few seconds: for which request,
// and what the server answers meanwhile. It stands between the client and the connection, and knows both.
//
//   WaitNotice notice({.behind = &connection, .clock = clock, …});
//   k8s::ApiClient client(&notice, clock, …);
//   tasks.spawn(executor, notice.announce());
class WaitNotice final : public k8s::Transport {
 public:
  // A shorter wait is not worth a line.
  static constexpr k8s::Duration kPatience = std::chrono::seconds(5);
  struct Parts {
    k8s::Transport* behind = nullptr;
    k8s::Clock* clock = nullptr;
    std::string command;              // Begins the line.
    std::string server;               // "https://host:port"
    k8s::Duration request_timeout{};  // A request with its retries ends then.
    std::ostream* err = nullptr;
  };
  explicit WaitNotice(Parts parts) : parts_(std::move(parts)) {}

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override;
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override;

  // Writes the line once, when the command has waited for kPatience. Ends then, or by cancellation.
  boost::asio::awaitable<void> announce();
  // Nothing is written from now on: a live view shows by itself what cannot be read.
  void end() { ended_ = true; }
  // A request was answered with 401: run_connected() names the rejected credentials.
  [[nodiscard]] bool was_refused() const { return refused_; }

 private:
  struct Open {
    std::string what;  // "GET /api/v1/nodes"
    k8s::MonoTime since;
  };
  class Pending;
  void note_failure(std::string failure);
  [[nodiscard]] std::optional<std::string> reason() const;

  Parts parts_;
  std::uint64_t requests_ = 0;
  std::map<std::uint64_t, Open> open_;  // The oldest first.
  std::optional<k8s::MonoTime> failing_since_;
  std::string failure_;
  bool ended_ = false;
  bool refused_ = false;
};

// Everything outlives the coroutine that is given this.
struct Session {
  boost::asio::io_context* io = nullptr;
  k8s::Clock* clock = nullptr;
  k8s::Transport* transport = nullptr;
  k8s::ApiClient* client = nullptr;  // interactive_client_options(). Give readers a k8s::Reader of it.
  WaitNotice* notice = nullptr;      // Of a person's command; the operator has a log.
  std::string server;                // "https://host:port/prefix"
  std::string namespace_name;        // Of the kubeconfig's context, or the pod's own.
  bool verified = true;              // The server's certificate is.
};

using SessionBody = std::function<boost::asio::awaitable<int>(Session session)>;

// Of a person's command: a few short retries, and --request-timeout bounds each request with all of them. Whoever waits
// at a terminal would rather read what the server answers than wait for minutes until it answers something else.
[[nodiscard]] k8s::ClientOptions interactive_client_options(const Options& options);

// What becomes of a command when no API server answers at the address, or one that only fails (HTTP 5xx).
enum class NoServer {
  ends_command,  // Soon, with a line on `err`: the many requests of a command would wait for each other.
  is_awaited,    // The body tries again by itself: the operator's `run`, whose /readyz names the cause meanwhile.
};

// Connects as the options say, runs the body to its end and returns the exit status that it gives; 2 with a line on
// `err` where the configuration of the connection cannot be used, or no server answers. A longer wait for the server is
// announced there (WaitNotice). After a 401 a line says whose credentials those were. `command` begins these lines.
// `interaction` is for credential plugins: k8s::terminal_of_process() for a command that a person has typed; they log
// in before the first request then, and take the time that they need.
[[nodiscard]] int run_connected(std::string_view command, const Options& options, k8s::Interaction interaction,
                                std::ostream& err, const SessionBody& body,
                                NoServer no_server = NoServer::ends_command);

// What `run` says of a connection that verifies no certificate; `invalid` unless the options allow it. A person's
// command does what the kubeconfig says, as kubectl does; the operator sends its token for as long as it runs.
[[nodiscard]] k8s::Result<void> check_verification(const k8s::Connection& connection, const Options& options);

// What is said once the API server has answered 401. `identity`: k8s::Connection's.
[[nodiscard]] std::string login_hint(const std::string& server, const std::string& identity);

// run_connected() for a person's command that needs no more than a client and the clock; one that only reads takes a
// k8s::Reader. `command` is the subcommand's name.
using ClusterTask = std::function<boost::asio::awaitable<int>(k8s::ApiClient* client, k8s::Clock* clock)>;
[[nodiscard]] int run_on_cluster(std::string_view command, const Options& options, std::ostream& err,
                                 const ClusterTask& task);

// SIGTERM, SIGINT and the like for commands that run until they are stopped: notifies `stop` at the first one. cancel()
// before the io_context is expected to run out of work.
class StopSignals {
 public:
  // The second signal ends the process, so that a stuck shutdown can be interrupted. `at_exit` is called before,
  // because no destructor runs then: it leaves a terminal as it was. With `hurry` each later signal notifies that, and
  // none ends the process: for a command that first undoes what it has set. A terminal that closes, and the keyboard's
  // quit, count as well.
  StopSignals(boost::asio::io_context& io, k8s::Signal* stop, std::function<void()> at_exit = {},
              k8s::Signal* hurry = nullptr)
      : set_(io, SIGTERM, SIGINT), stop_(stop), hurry_(hurry), at_exit_(std::move(at_exit)) {
    struct sigaction present{};
    const bool ignored = sigaction(SIGHUP, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
    if (hurry != nullptr) set_.add(SIGQUIT);
    if (hurry != nullptr && !ignored) set_.add(SIGHUP);  // Else nohup has asked to outlive the terminal.
    wait();
  }
  void cancel() { set_.cancel(); }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      const bool first = !std::exchange(seen_, true);
      if (!first && hurry_ == nullptr) end(number);
      (first ? stop_ : hurry_)->notify();
      wait();
    });
  }
  [[noreturn]] void end(int number) const {
    if (at_exit_) at_exit_();
    std::_Exit(128 + number);
  }
  boost::asio::signal_set set_;
  k8s::Signal* stop_;
  k8s::Signal* hurry_ = nullptr;  // Null: the second signal ends the process.
  std::function<void()> at_exit_;
  bool seen_ = false;
};

}  // namespace gso
