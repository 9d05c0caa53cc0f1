// Deduplication, series and the sending loop of Events.
#include "controller/writes/event_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace {

// No field of these has a null byte.
std::string object_text(const RecordEvent& event) {
  const ObjectRef& object = event.regarding;
  std::string out;
  for (const std::string* part : {&object.api_version, &object.kind, &object.ns, &object.name, &object.uid}) {
    out += *part;
    out += '\0';
  }
  return out;
}

std::string group_text(const RecordEvent& event) {
  return object_text(event) + event.why.code + '\0' + (event.warning ? 'W' : 'N');
}

}  // namespace

k8s::Print print_of(const RecordEvent& event) {
  return k8s::Print(group_text(event) + '\0' + event.why.message);
}

EventCorrelator::Reporter EventCorrelator::reporter_of(const RecordEvent& event, k8s::MonoTime now) {
  const k8s::Print id = print_of(event);
  const k8s::Print id_of_group = k8s::Print(group_text(event));
  Group& group = groups_[id_of_group];
  if (now - group.last > kSimilarWindow) group.notes.clear();
  group.last = now;
  if (std::ranges::find(group.notes, id) != group.notes.end()) return {.id = id, .combined = false};
  if (group.notes.size() >= kSimilar) return {.id = id_of_group, .combined = true};
  group.notes.push_back(id);
  return {.id = id, .combined = false};
}

bool EventCorrelator::allows(const RecordEvent& event, k8s::MonoTime now) {
  const double per_second = 1 / std::chrono::duration<double>(kObjectRefill).count();
  const auto object = objects_.try_emplace(k8s::Print(object_text(event)), per_second, kObjectBurst).first;
  return object->second.try_take(now);
}

void EventCorrelator::forget_old(k8s::MonoTime now) {
  std::erase_if(groups_, [&](const auto& entry) { return now - entry.second.last > kSimilarWindow; });
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.is_full(now); });
}

namespace {

using Json = nlohmann::json;

constexpr std::size_t kNoteLimit = 1024;  // events.k8s.io/v1: note.
constexpr std::size_t kNameLimit = 128;   // reason, action, reportingInstance.
constexpr int kAttempts = 3;
constexpr k8s::Backoff kRetry{std::chrono::seconds(1), std::chrono::seconds(10)};
// Between two looks at what can be forgotten.
constexpr Duration kForgetEvery = std::chrono::minutes(1);

// Events live beside a namespaced object; those of cluster-scoped objects in "default" (as kubelet does for Nodes).
std::string namespace_of(const ObjectRef& regarding) {
  return regarding.ns.empty() ? "default" : regarding.ns;
}

// As client-go names them: the object's name and a number that is unique enough. A name has at most 253 characters.
std::string name_of(const RecordEvent& event, std::uint64_t stamp) {
  const std::string suffix = fmt::format(".{:x}", stamp);
  return event.regarding.name.substr(0, 253 - suffix.size()) + suffix;
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
  return std::string(first_bytes(note, kNoteLimit - kEllipsis.size())).append(kEllipsis);
}

EventRecorder::EventRecorder(k8s::Writer* client, k8s::Clock* clock, EventRecorderOptions options,
                             EventRecorderHooks hooks)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      wake_(clock->make_signal()),
      sent_(clock->make_signal()),
      name_counter_(options_.seed),
      bucket_(options_.refill_per_second, options_.burst) {}

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
  const k8s::Print id = print_of(event);
  auto [it, fresh] = known_.try_emplace(id);
  Known& known = it->second;
  const bool same_occurrence = !fresh && pass != 0 && (known.pass == pass || known.pass + 1 == pass);
  known.pass = pass;
  known.last_seen = now;
  if (same_occurrence) return;
  if (fresh && queue_.size() >= options_.queue_limit) {
    hooks_.counted("dropped");
    known_.erase(it);  // The next pass that still has it tries again.
    return;
  }
  const EventCorrelator::Reporter reporter = correlator_.reporter_of(event, now);
  RecordEvent reported = event;
  if (reporter.combined) reported.why.message.insert(0, EventCorrelator::kCombinedPrefix);
  report(reporter.id, std::move(reported));
}

void EventRecorder::report(const k8s::Print& id, RecordEvent event) {
  Known& known = known_[id];
  known.last_seen = clock_->monotonic();
  known.last_time = clock_->now();
  if (known.stamp == 0) {
    known.stamp = new_stamp();
    known.first_time = known.last_time;
  } else {
    ++known.count;
    hooks_.counted("merged");
  }
  // A series that was updated a moment ago waits in `count` for its next occurrence after series_update.
  const bool too_soon = known.created && known.last_seen - known.series_sent < options_.series_update;
  if (known.queued || too_soon) return;
  if (queue_.size() >= options_.queue_limit || !correlator_.allows(event, known.last_seen))
    return hooks_.counted("dropped");
  known.queued = true;
  event.why.message = cut_note(event.why.message);
  queue_.push_back({id, std::move(event)});
  wake_->notify();
}

void EventRecorder::forget_old() {
  const MonoTime now = clock_->monotonic();
  if (now - forgot_at_ < kForgetEvery) return;
  forgot_at_ = now;
  // What the passes still repeat stays: there are as many as causes that hold.
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    return !known.queued && known.pass != pass_ && now - known.last_seen > options_.series_window;
  });
  correlator_.forget_old(now);
}

std::uint64_t EventRecorder::new_stamp() {
  const auto milliseconds = static_cast<std::uint64_t>(clock_->now().time_since_epoch().count());
  return (milliseconds << 16U) | (++name_counter_ & 0xffffU);
}

std::string EventRecorder::event_json(const Known& known, const RecordEvent& event) const {
  Json out{{"apiVersion", "events.k8s.io/v1"},
           {"kind", "Event"},
           {"metadata", {{"name", name_of(event, known.stamp)}, {"namespace", namespace_of(event.regarding)}}},
           {"eventTime", k8s::format_micro_time(known.first_time)},
           {"reportingController", options_.reporting_controller},
           {"reportingInstance", options_.reporting_instance.substr(0, kNameLimit)},
           {"action", (event.verb.empty() ? event.why.code : event.verb).substr(0, kNameLimit)},
           {"reason", event.why.code.substr(0, kNameLimit)},
           {"regarding", regarding_json(event.regarding)},
           {"note", event.why.message},
           {"type", event.warning ? "Warning" : "Normal"}};
  return dump(out);
}

boost::asio::awaitable<void> EventRecorder::run() {
  while (!stopping_) {
    if (queue_.empty()) {
      co_await wake_->wait();
      continue;
    }
    const MonoTime ready = clock_->monotonic() + bucket_.take(clock_->monotonic());
    while (!stopping_ && clock_->monotonic() < ready) co_await wake_->wait_until(ready);
    if (stopping_) break;
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    sending_ = true;
    co_await send(std::move(next));
    sending_ = false;
    if (queue_.empty()) sent_->notify();
  }
}

void EventRecorder::stop() {
  stopping_ = true;
  wake_->notify();
}

boost::asio::awaitable<void> EventRecorder::flush(MonoTime deadline) {
  while (!stopping_ && (sending_ || !queue_.empty()) && clock_->monotonic() < deadline)
    co_await sent_->wait_until(deadline);
}

boost::asio::awaitable<k8s::Result<std::string>> EventRecorder::send_once(Known known, RecordEvent event) {
  k8s::WriteOptions options;
  options.kind = k8s::WriteKind::event;
  options.before_send = hooks_.before_send;
  options.deadline = clock_->monotonic() + std::chrono::seconds(10);
  const std::string ns = namespace_of(event.regarding);
  if (known.created) {
    Json series{{"count", known.count}, {"lastObservedTime", k8s::format_micro_time(known.last_time)}};
    const std::string body = Json{{"series", std::move(series)}}.dump();
    const k8s::ObjectKey key{ns, name_of(event, known.stamp)};
    k8s::Result<std::string> patched = co_await client_->merge_patch(resources::events, key, body, options);
    if (patched || patched.error().reason != k8s::Reason::not_found) co_return patched;
    // The Event expired and was deleted: a new Event of the same name reports the occurrence.
  }
  const std::string body = event_json(known, event);
  co_return co_await client_->create(resources::events, ns, body, options);
}

boost::asio::awaitable<void> EventRecorder::send(Queued next) {
  auto found = known_.find(next.id);
  if (found == known_.end()) co_return;
  found->second.queued = false;
  const Known copy = found->second;
  for (int attempt = 1; attempt <= kAttempts && !stopping_; ++attempt) {
    k8s::Result<std::string> sent = co_await send_once(copy, next.event);
    const bool exists = !sent && sent.error().reason == k8s::Reason::already_exists;
    if (sent || exists) {
      found = known_.find(next.id);
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
    co_await wake_->wait_until(clock_->monotonic() + kRetry.after(attempt - 1));
  }
  hooks_.counted("dropped");
}

}  // namespace gso
