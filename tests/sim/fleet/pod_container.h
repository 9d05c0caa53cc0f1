// One container of a PodRunner, and the host of the program in it. Internal to pod_runner.cc and pod_status.cc.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/fleet/pod_runner.h"

namespace gso::sim {

struct PodRunner::Container final : public ProgramHost {
  enum class State { waiting, running, ended };
  struct End {
    int code = 0;
    std::string message;
    k8s::WallTime started_at{}, finished_at{};
  };

  Container(PodRunner* owner, ContainerSpec container_spec, bool is_init)
      : pod(owner), spec(std::move(container_spec)), init(is_init) {}

  void exit(int code, std::string message) override { pod->on_exit(*this, code, std::move(message)); }
  void after(k8s::Duration delay, std::function<void()> task) override {
    pod->env_.site->after(delay, process_life, std::move(task));
  }
  void log(std::string line) override { last_line = std::move(line); }
  std::string env(std::string_view name) const override {
    auto it = spec.env.find(std::string(name));
    return it == spec.env.end() ? "" : it->second;
  }
  PluginVersion version() const override { return PluginVersion::of_image(spec.image); }
  bool host_pid() const override { return pod->spec_.host_pid; }
  const FleetTiming& timing() const override { return pod->env_.site->pace.timing(); }
  Pace& pace() override { return pod->env_.site->pace; }
  Machine& machine() override { return *pod->env_.machine; }
  k8s::WallTime now() const override { return pod->env_.site->clock->now(); }
  std::vector<std::string> list_files(std::string_view folder) const override;
  std::optional<std::string> link() const override { return pod->link_; }
  void set_link(std::string target) override { pod->link_ = std::move(target); }
  bool readable(std::string_view path) const override;
  std::expected<std::string, std::string> read_link() const override;
  std::string node_label(std::string_view key) const override { return pod->env_.node_label(key); }
  bool hang_up(std::string_view process) override { return pod->hang_up(process); }
  void publish_features(std::map<std::string, std::string> labels) override {
    pod->env_.publish_features(std::move(labels));
  }
  void remove_features() override { pod->env_.publish_features(std::nullopt); }
  void report_slices() override { pod->env_.report_slices(); }
  std::int64_t most_slices() const override { return pod->env_.site->faults.most_slices; }

  PodRunner* pod;
  ContainerSpec spec;
  bool init;
  bool refuses_to_end = false;  // SIGTERM is not heard.
  State state = State::waiting;
  std::string waiting_reason = "PodInitializing";
  std::string waiting_message;
  std::unique_ptr<Program> program;
  std::shared_ptr<int> process_life;  // Expires when the process ends; its timers die with it.
  k8s::WallTime started_at{};
  std::optional<End> last_end;      // Of the process before the current one, or of the current one when ended.
  std::optional<End> previous_end;  // Of the process before that.
  std::int64_t restarts = 0;
  k8s::Duration backoff{0};
  std::string last_line;
};

// The program that a container runs, recognised by its name and command as the real manifests write them.
[[nodiscard]] std::unique_ptr<Program> make_program(const ContainerSpec& spec, bool init, bool uses_mps,
                                                    ProgramHost* host);

}  // namespace gso::sim
