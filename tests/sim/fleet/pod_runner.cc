#include "tests/sim/fleet/pod_runner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/pod_container.h"

namespace gso::sim {

PodRunner::PodRunner(PodEnvironment environment, PodSpec spec) : env_(std::move(environment)), spec_(std::move(spec)) {
  for (const ContainerSpec& container : spec_.init_containers)
    init_.push_back(std::make_unique<Container>(this, container, true));
  for (const ContainerSpec& container : spec_.containers)
    main_.push_back(std::make_unique<Container>(this, container, false));
}

PodRunner::~PodRunner() {
  for (auto& container : main_) container->process_life.reset();
}

void PodRunner::after(k8s::Duration real, Agenda::Task task) {
  env_.site->after(real, life_, std::move(task));
}

void PodRunner::begin() {
  stage_ = Stage::setup;
  begun_ = env_.site->clock->now();
  for (auto& container : init_) container->waiting_reason = "PodInitializing";
  for (auto& container : main_) container->waiting_reason = init_.empty() ? "ContainerCreating" : "PodInitializing";
  env_.status_changed();
  after(env_.site->pace.timing().pod_setup, [this] { mount(); });
}

void PodRunner::reject(std::string reason, std::string message) {
  stage_ = Stage::finished;
  reason_ = std::move(reason);
  message_ = std::move(message);
  env_.status_changed();
}

void PodRunner::mount() {
  if (stage_ != Stage::setup) return;
  const auto& configmaps = env_.site->configmaps;
  const bool missing = std::ranges::any_of(spec_.config_volumes, [&](const auto& volume) {
    return configmaps.find({spec_.key.ns, volume.second}) == nullptr;
  });
  if (missing) {
    // ContainerCreating, until the ConfigMap is there.
    const k8s::Duration first = env_.site->pace.timing().mount_retry;
    mount_wait_ = std::clamp(mount_wait_ * 2, first, first * 60);
    return after(mount_wait_, [this] { mount(); });
  }
  project();
  schedule_volume_sync();
  stage_ = Stage::init;
  advance_init();
}

// What a ConfigMap holds now is what the files show from now on. One that is gone leaves the files as they are.
void PodRunner::project() {
  for (const auto* volumes : {&spec_.config_volumes, &spec_.optional_volumes}) {
    for (const auto& [volume, name] : *volumes)
      if (JsonPtr map = env_.site->configmaps.find({spec_.key.ns, name})) projected_[volume] = std::move(map);
  }
}

void PodRunner::schedule_volume_sync() {
  Site& site = *env_.site;
  const k8s::Duration period = site.pace.spread(site.pace.timing().volume_sync, 1.5);
  site.agenda.after(period + site.pace.exact(site.faults.late_projection), life_, [this] {
    if (stage_ == Stage::finished || stage_ == Stage::gone) return;
    project();
    schedule_volume_sync();
  });
}

void PodRunner::sync_soon() {
  after(env_.site->pace.timing().pod_change_sync, [this] {
    if (stage_ == Stage::init || stage_ == Stage::running) project();
  });
}

void PodRunner::advance_init() {
  for (auto& container : init_) {
    if (container->state == Container::State::ended && container->last_end->code == 0) continue;
    return after(env_.site->pace.timing().container_start, [this, next = container.get()] {
      if (stage_ == Stage::init) start(*next);
    });
  }
  stage_ = Stage::running;
  main_begun_ = true;
  start_containers(0);
}

void PodRunner::start_containers(std::size_t from) {
  if (from >= main_.size()) return;
  after(env_.site->pace.timing().container_start, [this, from] {
    if (stage_ != Stage::running) return;
    start(*main_[from]);
    start_containers(from + 1);
  });
}

void PodRunner::start(Container& container) {
  container.state = Container::State::running;
  container.started_at = env_.site->clock->now();
  container.process_life = std::make_shared<int>();
  container.last_line.clear();
  container.program = make_program(container.spec, container.init, uses_mps_, &container);
  env_.status_changed();
  container.program->start();
}

void PodRunner::on_exit(Container& container, int code, std::string message) {
  if (container.state != Container::State::running) return;
  container.state = Container::State::ended;
  container.process_life.reset();
  if (!message.empty()) container.last_line = message;
  container.previous_end = std::move(container.last_end);
  container.last_end = Container::End{code, std::move(message), container.started_at, env_.site->clock->now()};
  container.program->gone();
  // The program may be on the stack; kubelet notices the end a moment later anyway.
  after(env_.site->pace.timing().container_relist, [this, &container] { noticed(container); });
}

void PodRunner::noticed(Container& container) {
  if (container.state != Container::State::ended || stage_ == Stage::gone || stage_ == Stage::finished) return;
  container.program.reset();
  env_.status_changed();
  if (stage_ == Stage::terminating) return gone_if_done();
  if (container.init && container.last_end->code == 0) return advance_init();
  if (restarts(container)) return restart_later(container);
  finish_if_done();
}

bool PodRunner::restarts(const Container& container) const {
  if (spec_.restart_policy == "Always") return true;
  return spec_.restart_policy == "OnFailure" && container.last_end->code != 0;
}

// The first restart is immediate, later ones wait 10 s, 20 s, … 5 min; running for 10 minutes forgets that.
void PodRunner::restart_later(Container& container) {
  const FleetTiming& timing = env_.site->pace.timing();
  const auto ran = container.last_end->finished_at - container.last_end->started_at;
  if (ran >= env_.site->pace.exact(timing.crash_backoff_reset)) container.backoff = k8s::Duration::zero();
  const k8s::Duration wait = std::exchange(
      container.backoff, std::clamp(container.backoff * 2, timing.crash_backoff, timing.crash_backoff_limit));
  auto again = [this, &container] {
    if (container.state == Container::State::running) return;
    if (stage_ != Stage::running && stage_ != Stage::init) return;
    ++container.restarts;
    start(container);
  };
  if (wait == k8s::Duration::zero()) return again();
  container.state = Container::State::waiting;
  container.waiting_reason = "CrashLoopBackOff";
  container.waiting_message = "back-off " + k8s::format_go_duration(wait) +
                              " restarting failed container=" + container.spec.name + " pod=" + spec_.key.name + "_" +
                              spec_.key.ns + "(" + spec_.uid + ")";
  env_.site->agenda.after(env_.site->pace.exact(wait), life_, std::move(again));
}

void PodRunner::finish_if_done() {
  const auto ended = [](const auto& container) { return container->state == Container::State::ended; };
  const bool init_failed = stage_ == Stage::init;
  if (!init_failed && !std::ranges::all_of(main_, ended)) return;
  stage_ = Stage::finished;
  env_.status_changed();
}

void PodRunner::terminate(k8s::Duration grace) {
  if (terminating()) return;
  const bool nothing_runs = stage_ == Stage::created || stage_ == Stage::setup || stage_ == Stage::finished;
  stage_ = Stage::terminating;
  if (nothing_runs) return gone_if_done();
  for (auto* list : {&init_, &main_}) {
    for (auto& container : *list) {
      if (container->state != Container::State::running) continue;
      container->refuses_to_end =
          env_.site->faults.mps_unclean_exit && container->program->process_name() == "mps-control-daemon";
      if (!container->refuses_to_end && grace > k8s::Duration::zero()) container->program->terminate();
    }
  }
  after(std::min(grace, env_.site->pace.timing().stop), [this] { kill_all(); });
}

void PodRunner::kill_all() {
  for (auto* list : {&init_, &main_}) {
    // Killed, where the grace period was not enough: 128 + SIGKILL.
    for (auto& container : *list) on_exit(*container, container->refuses_to_end ? 137 : 0, "");
  }
  after(env_.site->pace.timing().container_relist, [this] { gone_if_done(); });
}

void PodRunner::gone_if_done() {
  if (stage_ != Stage::terminating) return;
  for (auto* list : {&init_, &main_}) {
    for (auto& container : *list)
      if (container->state == Container::State::running) return;
  }
  stage_ = Stage::gone;
  env_.ended();
}

void PodRunner::node_changed() {
  for (auto* list : {&init_, &main_}) {
    for (auto& container : *list)
      if (container->state == Container::State::running) container->program->node_changed();
  }
}

bool PodRunner::hang_up(std::string_view process) {
  for (auto& container : main_) {
    if (container->state != Container::State::running || container->program->process_name() != process) continue;
    container->program->hang_up();
    return true;
  }
  return false;
}

bool PodRunner::crash(std::string_view name) {
  for (auto& container : main_) {
    if (container->spec.name != name || container->state != Container::State::running) continue;
    on_exit(*container, 2, "");
    return true;
  }
  return false;
}

void PodRunner::break_mps_clients() {
  if (uses_mps_) break_gpu_clients();
}

void PodRunner::break_gpu_clients() {
  for (auto& container : main_)
    if (!container->spec.gpus.empty()) on_exit(*container, 1, "CUDA error 806: the MPS server connection was lost");
}

void PodRunner::power_off() {
  life_ = std::make_shared<int>();  // Every timer of the pod is forgotten.
  for (auto* list : {&init_, &main_}) {
    for (auto& container : *list) {
      if (container->state != Container::State::running) continue;
      container->process_life.reset();
      container->state = Container::State::ended;
      container->last_end = Container::End{255, "", container->started_at, env_.site->clock->now()};
      container->program->gone();
    }
  }
}

// After a reboot kubelet makes a new sandbox: init containers run again; emptyDirs are on disk and stay.
void PodRunner::restart() {
  if (stage_ == Stage::finished) return;
  if (terminating()) {
    stage_ = Stage::terminating;
    return after(env_.site->pace.timing().container_relist, [this] { gone_if_done(); });
  }
  for (auto* list : {&init_, &main_}) {
    for (auto& container : *list) {
      container->program.reset();
      if (container->state == Container::State::ended) ++container->restarts;
      container->state = Container::State::waiting;
      container->waiting_reason = "PodInitializing";
      container->waiting_message.clear();
      container->backoff = k8s::Duration::zero();
    }
  }
  stage_ = Stage::setup;
  main_begun_ = false;
  env_.status_changed();
  after(env_.site->pace.timing().pod_setup, [this] { mount(); });
}

std::string PodRunner::last_log(std::string_view name) const {
  for (const auto* list : {&init_, &main_}) {
    for (const auto& container : *list)
      if (container->spec.name == name) return container->last_line;
  }
  return {};
}

bool PodRunner::ready() const {
  return stage_ == Stage::running && std::ranges::all_of(main_, [](const auto& container) {
           return container->state == Container::State::running;
         });
}

const nlohmann::json* PodRunner::files(std::string_view folder) const {
  for (const auto* list : {&init_, &main_}) {
    for (const auto& container : *list) {
      auto mount = container->spec.mounts.find(std::string(folder));
      if (mount == container->spec.mounts.end()) continue;
      auto volume = projected_.find(mount->second);
      if (volume == projected_.end()) continue;
      auto data = volume->second->find("data");
      return data == volume->second->end() ? nullptr : &*data;
    }
  }
  return nullptr;
}

std::vector<std::string> PodRunner::Container::list_files(std::string_view folder) const {
  std::vector<std::string> names;
  const nlohmann::json* data = pod->files(folder);
  if (data == nullptr) return names;
  for (const auto& [name, text] : data->items()) names.push_back(name);
  return names;
}

bool PodRunner::shows_file(std::string_view path) const {
  const auto slash = path.rfind('/');
  const nlohmann::json* data = files(path.substr(0, slash));
  return data != nullptr && data->contains(std::string(path.substr(slash + 1)));
}

bool PodRunner::Container::readable(std::string_view path) const {
  return path == "/dev/null" || pod->shows_file(path);
}

std::expected<std::string, std::string> PodRunner::Container::read_link() const {
  if (!pod->link_) return std::unexpected("open " + env("CONFIG_FILE") + ": no such file or directory");
  if (*pod->link_ == "/dev/null") return "";
  if (!readable(*pod->link_)) return std::unexpected("open " + env("CONFIG_FILE") + ": no such file or directory");
  const auto slash = pod->link_->rfind('/');
  return pod->files(pod->link_->substr(0, slash))->at(pod->link_->substr(slash + 1)).get<std::string>();
}

}  // namespace gso::sim
