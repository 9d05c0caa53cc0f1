// Deduplication, series and the sending loop of Events.
#include "controller/writes/event_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace gso {
namespace {

using Json = nlohmann::json;

const k8s::Gvr kEvents{"events.k8s.io", "v1", "events"};
constexpr std::size_t kNoteLimit = 1024;  // events.k8s.io/v1: note.
constexpr std::size_t kNameLimit = 128;   // reason, action, reportingInstance.
constexpr int kAttempts = 3;
constexpr std::size_t kKnownLimit = 20'000;

std::string cut(const std::string& text, std::size_t limit) {
  return text.substr(0, limit);
}

// Events live beside a namespaced object; those of cluster-scoped objects in "default" (as kubelet does for Nodes).
std::string namespace_of(const ObjectRef& regarding) {
  return regarding.ns.empty() ? "default" : regarding.ns;
}

Json regarding_json(const ObjectRef& object) {
  Json out{{"apiVersion", object.api_version}, {"kind", object.kind}, {"name", object.name}};
  if (!object.ns.empty()) out["namespace"] = object.ns;
  if (!object.uid.empty()) out["uid"] = object.uid;
  return out;
}

}  // namespace

std::string cut_note(const std::string& note) {
  constexpr std::string_view kEllipsis = "…";
  if (note.size() <= kNoteLimit) return note;
  std::size_t end = kNoteLimit - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(note[end]) & 0xC0) == 0x80) --end;
  return note.substr(0, end) + std::string(kEllipsis);
}

EventRecorder::EventRecorder(k8s::Writer* client, k8s::Clock* clock, EventRecorderOptions options,
                             EventRecorderHooks hooks)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      wake_(clock->make_signal()),
      name_counter_(options_.seed),
      tokens_(options_.burst) {}

EventRecorder::Key EventRecorder::key_of(const RecordEvent& event) {
  return {event.regarding, event.reason, event.note};
}

void EventRecorder::record_pass(const std::vector<RecordEvent>& events) {
  ++pass_;
  for (const RecordEvent& event : events) occurrence(event, pass_);
  forget_old();
}

void EventRecorder::record(const RecordEvent& event) {
  occurrence(event, 0);
}

void EventRecorder::occurrence(const RecordEvent& event, std::uint64_t pass) {
  const MonoTime now = clock_->monotonic();
  const Key key = key_of(event);
  auto [it, fresh] = known_.try_emplace(key);
  Known& known = it->second;
  const bool same_occurrence = !fresh && pass != 0 && (known.pass == pass || known.pass + 1 == pass);
  known.pass = pass;
  known.last_seen = now;
  if (same_occurrence) return;
  if (fresh) {
    known.event = event;
    known.event.note = cut_note(event.note);
    known.name = new_name(event);
    known.first_time = clock_->now();
  } else {
    ++known.count;
    hooks_.counted("merged");
  }
  known.last_time = clock_->now();
  // Not remembered when there is no room: the next pass that still has it tries again.
  if (!enqueue(key, known) && fresh) known_.erase(it);
}

bool EventRecorder::enqueue(const Key& key, Known& known) {
  if (known.queued) return true;
  if (queue_.size() >= options_.queue_limit) {
    hooks_.counted("dropped");
    return false;
  }
  known.queued = true;
  queue_.push_back(key);
  wake_->notify();
  return true;
}

void EventRecorder::forget_old() {
  const MonoTime now = clock_->monotonic();
  const bool crowded = known_.size() > kKnownLimit;
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    if (known.queued || known.pass == pass_) return false;
    return crowded || now - known.last_seen > options_.series_window;
  });
}

std::string EventRecorder::new_name(const RecordEvent& event) {
  // As client-go: the object's name and a number that is unique enough. A name has at most 253 characters.
  const auto stamp = static_cast<std::uint64_t>(clock_->now().time_since_epoch().count());
  const std::string suffix = fmt::format(".{:x}{:04x}", stamp, ++name_counter_ & 0xffff);
  return cut(event.regarding.name, 253 - suffix.size()) + suffix;
}

std::string EventRecorder::event_json(const Known& known) const {
  const RecordEvent& event = known.event;
  Json out{{"apiVersion", "events.k8s.io/v1"},
           {"kind", "Event"},
           {"metadata", {{"name", known.name}, {"namespace", namespace_of(event.regarding)}}},
           {"eventTime", k8s::format_micro_time(known.first_time)},
           {"reportingController", options_.reporting_controller},
           {"reportingInstance", cut(options_.reporting_instance, kNameLimit)},
           {"action", cut(event.action.empty() ? event.reason : event.action, kNameLimit)},
           {"reason", cut(event.reason, kNameLimit)},
           {"regarding", regarding_json(event.regarding)},
           {"note", event.note},
           {"type", event.warning ? "Warning" : "Normal"}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string EventRecorder::series_json(const Known& known) const {
  Json series{{"count", known.count}, {"lastObservedTime", k8s::format_micro_time(known.last_time)}};
  return Json{{"series", std::move(series)}}.dump();
}

// The moment from which the next Event may be sent; counts it.
MonoTime EventRecorder::take_token() {
  const MonoTime now = clock_->monotonic();
  const double passed = std::chrono::duration<double>(now - refilled_at_).count();
  tokens_ = std::min(options_.burst, tokens_ + passed * options_.refill_per_second) - 1;
  refilled_at_ = now;
  if (tokens_ >= 0) return now;
  const std::chrono::duration<double> wait(-tokens_ / options_.refill_per_second);
  return now + std::chrono::duration_cast<Duration>(wait);
}

boost::asio::awaitable<void> EventRecorder::run() {
  while (!stopping_) {
    if (queue_.empty()) {
      co_await wake_->wait();
      continue;
    }
    const MonoTime ready = take_token();
    while (!stopping_ && clock_->monotonic() < ready) co_await wake_->wait_until(ready);
    if (stopping_) break;
    const Key key = queue_.front();
    queue_.pop_front();
    co_await send(key);
  }
}

void EventRecorder::stop() {
  stopping_ = true;
  wake_->notify();
}

boost::asio::awaitable<k8s::Result<std::string>> EventRecorder::send_once(std::string ns, Known known) {
  k8s::WriteOptions options;
  options.before_send = hooks_.before_send;
  options.deadline = clock_->monotonic() + std::chrono::seconds(10);
  if (known.created) {
    const std::string body = series_json(known);
    const k8s::ObjectKey key{ns, known.name};
    k8s::Result<std::string> patched = co_await client_->merge_patch(kEvents, key, body, options);
    if (patched || patched.error().reason != k8s::Reason::not_found) co_return patched;
    // The Event expired and was deleted: a new Event of the same name reports the occurrence.
  }
  const std::string body = event_json(known);
  k8s::Result<std::string> created = co_await client_->create(kEvents, ns, body, options);
  co_return created;
}

boost::asio::awaitable<void> EventRecorder::send(Key key) {
  auto found = known_.find(key);
  if (found == known_.end()) co_return;
  // A series that was updated a moment ago waits in `count` for its next occurrence after series_update.
  found->second.queued = false;
  const bool repeated = found->second.created;
  if (repeated && clock_->monotonic() - found->second.series_sent < options_.series_update) co_return;
  const Known copy = found->second;
  const std::string ns = namespace_of(copy.event.regarding);
  for (int attempt = 1; attempt <= kAttempts && !stopping_; ++attempt) {
    k8s::Result<std::string> sent = co_await send_once(ns, copy);
    const bool exists = !sent && sent.error().reason == k8s::Reason::already_exists;
    if (sent || exists) {
      found = known_.find(key);
      if (found != known_.end()) {
        found->second.created = true;
        found->second.series_sent = clock_->monotonic();
      }
      hooks_.counted("sent");
      co_return;
    }
    if (sent.error().reason == k8s::Reason::cancelled) break;  // No lease, or shutting down.
    if (!k8s::retryable(sent.error()) || attempt == kAttempts) {
      hooks_.counted("failed");
      hooks_.failed(sent.error());
      co_return;
    }
    co_await wake_->wait_until(clock_->monotonic() + std::chrono::seconds(attempt));
  }
  hooks_.counted("dropped");
}

}  // namespace gso
