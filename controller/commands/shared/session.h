// What the commands that talk to a cluster share: one connection, and a loop that runs a coroutine over it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "controller/config/options.h"
#include "k8sclient/api/client.h"
#include "k8sclient/auth/connection.h"
#include "k8sclient/auth/interaction.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"

namespace gso {

class WaitNotice;

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
// announced there (wait_notice.h). After a 401 a line says whose
// credentials those were. `command` begins that line. `interaction` is for credential plugins:
// k8s::terminal_of_process() for a command that a person has typed; they log in before the first request then, and take
// the time that they need.
[[nodiscard]] int run_connected(std::string_view command, const Options& options, k8s::Interaction interaction,
                                std::ostream& err, const SessionBody& body,
                                NoServer no_server = NoServer::ends_command);

// What `run` says of a connection that verifies no certificate; `invalid` unless the options allow it. A person's
// command does what the kubeconfig says, as kubectl does; the operator sends its token for as long as it runs.
[[nodiscard]] k8s::Result<void> check_verification(const k8s::Connection& connection, const Options& options);

// What is said once the API server has answered 401. `identity`: k8s::Connection's.
[[nodiscard]] std::string login_hint(const std::string& server, const std::string& identity);

// The same for a person's command that only reads and needs no more than a reader and the clock. `command` is the
// subcommand's name.
using ReadingTask = std::function<boost::asio::awaitable<int>(k8s::Reader* reader, k8s::Clock* clock)>;
[[nodiscard]] int run_on_cluster(const std::string& command, const Options& options, std::ostream& err,
                                 const ReadingTask& task);
// The same for one that changes the cluster.
using ChangingTask = std::function<boost::asio::awaitable<int>(k8s::ApiClient* client, k8s::Clock* clock)>;
[[nodiscard]] int change_cluster(const std::string& command, const Options& options, std::ostream& err,
                                 const ChangingTask& task);

}  // namespace gso
