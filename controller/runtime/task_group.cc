// Spawning with a cancellation slot each, and counting down.
#include "controller/runtime/task_group.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <list>
#include <stdexcept>
#include <utility>

namespace gso {

EndCounter::EndCounter(k8s::Clock* clock) : clock_(clock), changed_(clock->make_signal()) {}

void EndCounter::note() {
  ++ended_;
  changed_->notify();
}

boost::asio::awaitable<bool> EndCounter::one_more(k8s::Duration patience) {
  const std::uint64_t before = ended_;
  const k8s::MonoTime deadline = clock_->monotonic() + patience;
  while (ended_ == before && clock_->monotonic() < deadline) co_await changed_->wait_until(deadline);
  co_return ended_ > before;
}

namespace asio = boost::asio;

struct TaskGroup::State {
  struct Task {
    asio::cancellation_signal cancel;
    bool ended = false;
  };
  // Shared, because a task may end inside the emit() that cancels it.
  std::list<std::shared_ptr<Task>> running;
  std::unique_ptr<k8s::Signal> ended;
  std::function<void(const std::string&)> report;
  std::string failure;

  void note(const std::exception_ptr& error) {
    if (error == nullptr) return;
    try {
      std::rethrow_exception(error);
    } catch (const boost::system::system_error& e) {
      if (e.code() == asio::error::operation_aborted) return;
      if (failure.empty()) failure = e.what();
    } catch (const std::exception& e) {
      if (failure.empty()) failure = e.what();
    }
    if (report && !failure.empty()) report(failure);
  }
};

TaskGroup::TaskGroup(k8s::Clock* clock) : clock_(clock), state_(std::make_shared<State>()) {
  state_->ended = clock->make_signal();
}
TaskGroup::~TaskGroup() = default;

void TaskGroup::spawn(asio::any_io_executor executor, asio::awaitable<void> task) {
  auto entry = std::make_shared<State::Task>();
  auto place = state_->running.insert(state_->running.end(), entry);
  auto ended = [state = state_, place](const std::exception_ptr& error) {
    (*place)->ended = true;
    state->running.erase(place);
    state->note(error);
    state->ended->notify();
  };
  asio::co_spawn(executor, std::move(task), asio::bind_cancellation_slot(entry->cancel.slot(), std::move(ended)));
}

void TaskGroup::cancel() {
  const std::vector<std::shared_ptr<State::Task>> tasks(state_->running.begin(), state_->running.end());
  for (const auto& task : tasks)
    if (!task->ended) task->cancel.emit(asio::cancellation_type::terminal);
}

asio::awaitable<void> TaskGroup::join() {
  co_await join_until(k8s::MonoTime::never());
  if (!state_->report && !state_->failure.empty()) throw std::runtime_error(state_->failure);
}

asio::awaitable<bool> TaskGroup::join_until(k8s::MonoTime deadline) {
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!state_->running.empty() && clock_->monotonic() < deadline) co_await state_->ended->wait_until(deadline);
  co_await asio::this_coro::throw_if_cancelled(throws);
  co_return state_->running.empty();
}

std::size_t TaskGroup::size() const {
  return state_->running.size();
}
const std::string& TaskGroup::failure() const {
  return state_->failure;
}
void TaskGroup::on_failure(std::function<void(const std::string& what)> report) {
  state_->report = std::move(report);
}

namespace {

struct Line {
  std::vector<asio::awaitable<void>> tasks;
  std::function<bool()> ends;
  std::size_t next = 0;
};

asio::awaitable<void> run_in_turn(std::shared_ptr<Line> line) {
  // Asio 1.26: a co_spawned coroutine that is cancelled and ends before its first suspension throws out of the
  // io_context.
  co_await asio::post(asio::use_awaitable);
  while (line->next < line->tasks.size() && !line->ends()) co_await std::move(line->tasks[line->next++]);
}

}  // namespace

asio::awaitable<void> run_side_by_side(TaskGroup* group, std::vector<asio::awaitable<void>> tasks, std::size_t most,
                                       std::function<bool()> ends) {
  const auto executor = co_await asio::this_coro::executor;
  const auto line = std::make_shared<Line>();
  line->tasks = std::move(tasks);
  line->ends = std::move(ends);
  for (std::size_t i = 0; i < std::min(most, line->tasks.size()); ++i) group->spawn(executor, run_in_turn(line));
  co_await group->join();
}

}  // namespace gso
