#include "tests/sim/story/operator_host.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "tests/sim/apiserver/request.h"

namespace gso::sim {

namespace asio = boost::asio;

namespace {

// What clock and network of a host ask before they let the process go on.
struct ProcessState {
  SimClock* clock = nullptr;
  k8s::Duration wall_offset{0};
  k8s::MonoTime stopped_until{};
  bool dead = false;                                // Killed: nothing of it is sent any more.
  std::map<std::string, k8s::MonoTime> heard = {};  // By resource.
};

// Returns when the process runs.
asio::awaitable<void> run_again(std::shared_ptr<ProcessState> process) {
  while (!process->dead && process->stopped_until > process->clock->monotonic()) {
    const k8s::MonoTime until = process->stopped_until;
    co_await process->clock->sleep_until(until);
  }
}

class HostSignal final : public k8s::Signal {
 public:
  HostSignal(std::shared_ptr<ProcessState> process, std::unique_ptr<k8s::Signal> inner)
      : process_(std::move(process)), inner_(std::move(inner)) {}
  void notify() override { inner_->notify(); }
  asio::awaitable<bool> wait_until(k8s::MonoTime deadline) override {
    const std::shared_ptr<ProcessState> process = process_;
    const bool notified = co_await inner_->wait_until(deadline);
    if (process->stopped_until > process->clock->monotonic()) co_await run_again(process);
    co_return notified;
  }

 private:
  std::shared_ptr<ProcessState> process_;
  std::unique_ptr<k8s::Signal> inner_;
};

class HostClock final : public k8s::Clock {
 public:
  explicit HostClock(std::shared_ptr<ProcessState> process) : process_(std::move(process)) {}
  [[nodiscard]] k8s::WallTime now() const override {
    return process_->clock->now() + std::chrono::duration_cast<std::chrono::milliseconds>(process_->wall_offset);
  }
  [[nodiscard]] k8s::MonoTime monotonic() const override { return process_->clock->monotonic(); }
  asio::awaitable<void> sleep_until(k8s::MonoTime deadline) override {
    const std::shared_ptr<ProcessState> process = process_;
    co_await process->clock->sleep_until(deadline);
    if (process->stopped_until > process->clock->monotonic()) co_await run_again(process);
  }
  [[nodiscard]] std::unique_ptr<k8s::Signal> make_signal() override {
    return std::make_unique<HostSignal>(process_, process_->clock->make_signal());
  }

 private:
  std::shared_ptr<ProcessState> process_;
};

class HostStream final : public k8s::ByteStream {
 public:
  HostStream(std::shared_ptr<ProcessState> process, std::unique_ptr<k8s::ByteStream> inner, std::string resource)
      : process_(std::move(process)), inner_(std::move(inner)), resource_(std::move(resource)) {}
  [[nodiscard]] int status() const override { return inner_->status(); }
  [[nodiscard]] std::string_view header(std::string_view name) const override { return inner_->header(name); }
  asio::awaitable<k8s::Result<std::string>> read(std::chrono::milliseconds idle) override {
    const std::shared_ptr<ProcessState> process = process_;
    k8s::Result<std::string> bytes = co_await inner_->read(idle);
    if (process->stopped_until > process->clock->monotonic()) co_await run_again(process);
    if (bytes && !bytes->empty() && status() < 300) process->heard[resource_] = process->clock->monotonic();
    co_return bytes;
  }

 private:
  std::shared_ptr<ProcessState> process_;
  std::unique_ptr<k8s::ByteStream> inner_;
  std::string resource_;
};

class HostTransport final : public k8s::Transport {
 public:
  HostTransport(std::shared_ptr<ProcessState> process, InProcessTransport* inner)
      : process_(std::move(process)), inner_(inner) {}

  asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    const std::shared_ptr<ProcessState> process = process_;
    if (process->dead) co_return gone();
    k8s::Result<k8s::HttpResponse> answer = co_await inner_->send(std::move(request));
    if (process->stopped_until > process->clock->monotonic()) co_await run_again(process);
    if (process->dead) co_return gone();
    co_return answer;
  }

  asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    const std::shared_ptr<ProcessState> process = process_;
    if (process->dead) co_return gone();
    const std::string resource = parse_request(request).plural;
    k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await inner_->open(std::move(request));
    if (process->stopped_until > process->clock->monotonic()) co_await run_again(process);
    if (process->dead) co_return gone();
    if (!stream) co_return std::unexpected(stream.error());
    co_return std::make_unique<HostStream>(process, *std::move(stream), resource);
  }

 private:
  static std::unexpected<k8s::Error> gone() { return k8s::fail(k8s::Reason::cancelled, "the process was killed"); }
  std::shared_ptr<ProcessState> process_;
  InProcessTransport* inner_;
};

}  // namespace

struct OperatorHost::State {
  State(asio::any_io_executor on, SimClock* time, ApiServer* server, std::string user, std::string called)
      : executor(std::move(on)),
        name(std::move(called)),
        process(std::make_shared<ProcessState>(ProcessState{.clock = time})),
        network(*server, {.user = std::move(user), .user_agent = name}),
        transport(process, &network),
        clock(process),
        op(executor, &transport, &clock) {}

  asio::any_io_executor executor;
  std::string name;
  std::shared_ptr<ProcessState> process;
  InProcessTransport network;
  HostTransport transport;
  HostClock clock;
  InProcessOperator op;
  OperatorSettings settings = {};
  std::uint64_t starts = 0, crashes = 0, cuts = 0;
  bool closed = false;  // Nobody starts it again.
  std::string why = {};
};

OperatorHost::OperatorHost(asio::any_io_executor executor, SimClock* clock, ApiServer* server, std::string user,
                           std::string name)
    : state_(std::make_shared<State>(std::move(executor), clock, server, std::move(user), std::move(name))) {}

OperatorHost::~OperatorHost() {
  state_->closed = true;
}

k8s::Result<void> OperatorHost::start(const OperatorSettings& settings) {
  state_->settings = settings;
  OperatorSettings named = settings;
  // A pod's name and uid: no two processes are called the same.
  named.emplace_back("identity", state_->name + "-" + std::to_string(++state_->starts));
  state_->process->dead = false;
  state_->process->heard.clear();
  return state_->op.start(named);
}

asio::awaitable<void> OperatorHost::kill() {
  state_->process->dead = true;
  co_await state_->op.kill();
}

std::string OperatorHost::trouble() {
  if (!state_->why.empty()) return state_->why;
  return state_->process->dead ? std::string() : state_->op.trouble();
}

asio::awaitable<void> OperatorHost::restart(std::shared_ptr<State> state, k8s::Duration down) {
  co_await asio::post(asio::use_awaitable);  // Not within the exchange that ends.
  const k8s::MonoTime again = state->process->clock->monotonic() + down;
  co_await state->op.kill();
  co_await state->process->clock->sleep_until(again);
  if (state->closed) co_return;
  state->process->stopped_until = {};
  state->process->dead = false;
  state->process->heard.clear();
  OperatorSettings named = state->settings;
  named.emplace_back("identity", state->name + "-" + std::to_string(++state->starts));
  const k8s::Result<void> started = state->op.start(named);
  if (!started) state->why = started.error().message;
}

void OperatorHost::crash(k8s::Duration down) {
  if (state_->process->dead) return;
  state_->process->dead = true;
  ++state_->crashes;
  asio::co_spawn(state_->executor, restart(state_, down), asio::detached);
}

void OperatorHost::suspend(k8s::Duration length) {
  ProcessState& process = *state_->process;
  process.stopped_until = std::max(process.stopped_until, process.clock->monotonic() + length);
}

void OperatorHost::step_wall_clock(k8s::Duration by) {
  state_->process->wall_offset += by;
}

namespace {

asio::awaitable<void> connect_again(std::shared_ptr<OperatorHost::State> state, std::uint64_t cut,
                                    k8s::Duration length) {
  co_await state->process->clock->sleep_for(length);
  if (cut == state->cuts) state->network.set_connected(true);
}

}  // namespace

void OperatorHost::cut_off(k8s::Duration length) {
  state_->network.set_connected(false);
  asio::co_spawn(state_->executor, connect_again(state_, ++state_->cuts, length), asio::detached);
}

Faults& OperatorHost::faults() {
  return state_->network.faults();
}

void OperatorHost::set_request_listener(std::function<void(const k8s::HttpRequest&)> listener) {
  state_->network.set_request_listener(std::move(listener));
}

std::optional<k8s::MonoTime> OperatorHost::heard_of(const std::string& resource) const {
  const auto found = state_->process->heard.find(resource);
  return found == state_->process->heard.end() ? std::nullopt : std::optional(found->second);
}

const std::string& OperatorHost::name() const {
  return state_->name;
}

const OperatorSettings& OperatorHost::settings() const {
  return state_->settings;
}

std::string OperatorHost::recent_log() const {
  return state_->op.recent_log();
}

RuntimeHooks& OperatorHost::hooks() {
  return state_->op.hooks;
}

std::uint64_t OperatorHost::crashes() const {
  return state_->crashes;
}

}  // namespace gso::sim
