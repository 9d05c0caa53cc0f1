#include "tests/sim/fleet/outbox.h"

#include <utility>

#include "k8sclient/api/client.h"

namespace gso::sim {
namespace {
constexpr k8s::Duration kRetry = std::chrono::milliseconds(500);
}  // namespace

Write removal(k8s::Gvr gvr, k8s::ObjectKey key, std::string uid, std::optional<std::int64_t> grace_period_seconds) {
  Write write{.verb = Write::Verb::remove, .gvr = std::move(gvr), .key = std::move(key)};
  write.preconditions.uid = std::move(uid);
  write.preconditions.grace_period_seconds = grace_period_seconds;
  return write;
}

Outbox::Outbox(k8s::ApiClient* client, k8s::Clock* clock)
    : client_(client), clock_(clock), wake_(clock->make_signal()) {}

void Outbox::push(Write write) {
  queue_.push_back(std::move(write));
  wake_->notify();
}

boost::asio::awaitable<k8s::Result<std::string>> Outbox::send(Write write) {
  k8s::WriteOptions options;
  options.subresource = write.subresource;
  if (write.verb == Write::Verb::create) {
    // A subresource is created below its object: pods/NAME/binding.
    if (!write.subresource.empty()) write.gvr.resource += "/" + write.key.name + "/" + write.subresource;
    options.subresource.clear();
    auto created = co_await client_->create(write.gvr, write.key.ns, write.body, options);
    co_return created;
  }
  if (write.verb == Write::Verb::update) {
    auto updated = co_await client_->update(write.gvr, write.key, write.body, options);
    co_return updated;
  }
  if (write.verb == Write::Verb::remove) {
    auto removed = co_await client_->remove(write.gvr, write.key, write.preconditions, options);
    if (!removed) co_return std::unexpected(removed.error());
    co_return std::string();
  }
  auto patched = co_await client_->merge_patch(write.gvr, write.key, write.body, options);
  co_return patched;
}

boost::asio::awaitable<void> Outbox::run() {
  while (!stopping_) {
    if (queue_.empty()) {
      const bool notified = co_await wake_->wait_until(k8s::MonoTime::never());
      (void)notified;
      continue;
    }
    Write write = std::move(queue_.front());
    queue_.pop_front();
    auto answer = co_await send(write);
    if (stopping_) break;
    if (!answer && k8s::retryable(answer.error())) {
      queue_.push_front(std::move(write));
      co_await clock_->sleep_for(kRetry);
      continue;
    }
    if (write.done) write.done(answer);
  }
}

void Outbox::stop() {
  stopping_ = true;
  wake_->notify();
}

}  // namespace gso::sim
