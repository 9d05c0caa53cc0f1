// The operator in this process, over any transport and clock: what the simulated cluster runs.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/runtime/run_operator.h"
#include "tests/sim/story/operator_control.h"

namespace gso::sim {

class InProcessOperator final : public OperatorControl {
 public:
  // Transport and clock must outlive this object and what it started.
  InProcessOperator(boost::asio::any_io_executor executor, k8s::Transport* transport, k8s::Clock* clock);
  ~InProcessOperator() override;
  [[nodiscard]] k8s::Result<void> start(const OperatorSettings& settings) override;
  boost::asio::awaitable<void> kill() override;
  // A clean shutdown; returns when the operator has ended.
  boost::asio::awaitable<void> stop();
  [[nodiscard]] std::string trouble() override;
  // Of the current or last run; null before the first.
  [[nodiscard]] std::shared_ptr<const RuntimeView> view() const;
  // Given to every run that starts from now on.
  RuntimeHooks hooks;
  // What its /metrics would show, in Prometheus' text format; nullopt while it does not run.
  [[nodiscard]] std::optional<std::string> metrics_page() const;
  // Of the current or last run: its log lines, newest last, at most some hundreds.
  [[nodiscard]] std::string recent_log() const;

 private:
  struct Run;
  static boost::asio::awaitable<void> live(std::shared_ptr<Run> run, Runtime runtime, Options options);

  boost::asio::any_io_executor executor_;
  k8s::Transport* transport_;
  k8s::Clock* clock_;
  std::shared_ptr<Run> run_;
  std::uint64_t starts_ = 0;
};

// The options of these settings over the defaults. Errors (`invalid`) name the setting.
[[nodiscard]] k8s::Result<Options> operator_options(const OperatorSettings& settings);

}  // namespace gso::sim
