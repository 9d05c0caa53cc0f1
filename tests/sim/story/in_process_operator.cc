#include "tests/sim/story/in_process_operator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>
#include <utility>

#include "controller/config/logging.h"
#include "controller/serving/metrics.h"

namespace gso::sim {

namespace asio = boost::asio;

struct InProcessOperator::Run {
  std::shared_ptr<RuntimeView> view = std::make_shared<RuntimeView>();
  std::unique_ptr<k8s::Signal> stop, kill, ended;
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::shared_ptr<std::deque<std::string>> log = std::make_shared<std::deque<std::string>>();
  bool over = false;
  std::string why;  // It ended by itself.
};

InProcessOperator::InProcessOperator(asio::any_io_executor executor, k8s::Transport* transport, k8s::Clock* clock)
    : executor_(std::move(executor)), transport_(transport), clock_(clock) {}

InProcessOperator::~InProcessOperator() = default;

k8s::Result<Options> operator_options(const OperatorSettings& settings) {
  Options options;
  for (const auto& [name, value] : settings) {
    const auto& specs = option_specs();
    auto spec = std::ranges::find(specs, name, &OptionSpec::name);
    if (spec == specs.end()) return k8s::fail(k8s::Reason::invalid, "the operator has no setting '" + name + "'");
    if (const std::string wrong = spec->set(options, value); !wrong.empty())
      return k8s::fail(k8s::Reason::invalid, "setting " + name + "=" + value + ": " + wrong);
  }
  return options;
}

asio::awaitable<void> InProcessOperator::live(std::shared_ptr<Run> run, Runtime runtime, Options options) {
  const k8s::Result<void> ended = co_await run_operator(std::move(runtime), std::move(options));
  run->over = true;
  if (!ended) run->why = ended.error().message;
  run->ended->notify();
}

k8s::Result<void> InProcessOperator::start(const OperatorSettings& settings) {
  OperatorSettings all{{"metrics-bind-address", "0"},
                       {"health-probe-bind-address", "0"},
                       {"operand-namespaces", "gpu-operator,nebuly-nvidia"}};
  all.insert(all.end(), settings.begin(), settings.end());
  auto options = operator_options(all);
  if (!options) return std::unexpected(options.error());
  run_ = std::make_shared<Run>();
  run_->stop = clock_->make_signal();
  run_->kill = clock_->make_signal();
  run_->ended = clock_->make_signal();
  auto keep = [log = run_->log](const std::string& line) {
    log->push_back(line);
    if (log->size() > 400) log->pop_front();
  };
  Runtime runtime;
  runtime.transport = transport_;
  runtime.clock = clock_;
  runtime.stop = run_->stop.get();
  runtime.kill = run_->kill.get();
  runtime.view = run_->view;
  runtime.metrics = run_->metrics;
  runtime.log =
      std::make_shared<Logger>(LogFormat::text, options->log_level, [clock = clock_] { return clock->now(); }, keep);
  runtime.hooks = hooks;
  runtime.seed = ++starts_;
  asio::co_spawn(executor_, live(run_, std::move(runtime), *std::move(options)), asio::detached);
  return {};
}

asio::awaitable<void> InProcessOperator::kill() {
  const std::shared_ptr<Run> run = run_;
  if (run == nullptr) co_return;
  run->kill->notify();
  while (!run->over) {
    const bool ended = co_await run->ended->wait_until(k8s::MonoTime::never());
    (void)ended;
  }
}

asio::awaitable<void> InProcessOperator::stop() {
  const std::shared_ptr<Run> run = run_;
  if (run == nullptr) co_return;
  run->stop->notify();
  while (!run->over) {
    const bool ended = co_await run->ended->wait_until(k8s::MonoTime::never());
    (void)ended;
  }
}

std::string InProcessOperator::trouble() {
  if (run_ == nullptr || !run_->over) return {};
  return "the operator has ended" + (run_->why.empty() ? std::string() : ": " + run_->why);
}

std::shared_ptr<const RuntimeView> InProcessOperator::view() const {
  return run_ == nullptr ? nullptr : run_->view;
}

std::optional<std::string> InProcessOperator::metrics_page() const {
  if (run_ == nullptr || run_->over) return std::nullopt;
  return run_->metrics->render(Metrics::Format::prometheus);
}

std::string InProcessOperator::recent_log() const {
  std::string text;
  if (run_ == nullptr) return text;
  for (const std::string& line : *run_->log) text += line + "\n";
  return text;
}

}  // namespace gso::sim
