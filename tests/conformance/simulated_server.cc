// The simulated API server as a server to play sequences on (server.h).
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

#include "tests/conformance/server.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/sim_clock.h"

namespace gso::conformance {
namespace {

namespace asio = boost::asio;

// The current time, so that both servers' times are near each other.
k8s::WallTime today() {
  return std::chrono::time_point_cast<k8s::WallTime::duration>(std::chrono::system_clock::now());
}

// Like an API server without controllers beside it: nodes keep the taint that they are born with, nobody collects.
sim::ApiServerOptions without_controllers() {
  sim::ApiServerOptions options;
  options.taint_new_nodes = true;
  options.default_service_accounts = false;
  options.collector_delay = std::chrono::hours(24 * 365);
  return options;
}

class Simulated final : public Server {
 public:
  [[nodiscard]] std::string name() const override { return "simulated"; }
  [[nodiscard]] k8s::Transport& transport() override { return transport_; }
  [[nodiscard]] k8s::Clock& clock() override { return clock_; }
  [[nodiscard]] int jobs() const override { return 1; }

  asio::awaitable<k8s::Result<void>> forget_history() override {
    api_.compact();
    co_return k8s::Result<void>{};
  }

  void run(asio::awaitable<void> work) override {
    bool done = false;
    std::exception_ptr thrown;
    asio::co_spawn(io_, std::move(work), [&done, &thrown](std::exception_ptr error) {
      done = true;
      thrown = std::move(error);
    });
    if (!clock_.run_until([&done] { return done; }, std::chrono::hours(24)))
      throw std::runtime_error("the simulated server did not finish within a day of its time");
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  asio::io_context io_{1};
  sim::SimClock clock_{io_, today()};
  sim::ApiServer api_{io_.get_executor(), clock_, without_controllers()};
  sim::InProcessTransport transport_{api_, {.user = "system:admin", .user_agent = "conformance"}};
};

}  // namespace

std::unique_ptr<Server> make_simulated_server() {
  return std::make_unique<Simulated>();
}

}  // namespace gso::conformance
