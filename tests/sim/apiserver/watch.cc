// Watch streams and their fan-out.
#include "tests/sim/apiserver/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gso::sim {
namespace {

constexpr k8s::Duration kBookmarkInterval = std::chrono::minutes(1);
constexpr const char* kInitialEventsEnd = "k8s.io/initial-events-end";

ApiError too_old(std::uint64_t revision, std::uint64_t oldest) {
  return expired(fmt::format("too old resource version: {} ({})", revision, oldest));
}

}  // namespace

WatchStream::WatchStream(WatchOptions options, k8s::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      end_(clock.monotonic() + options_.timeout),
      next_bookmark_(clock.monotonic() + kBookmarkInterval) {}

std::string WatchStream::take() {
  return std::exchange(buffer_, {});
}

void WatchStream::wake() {
  if (wakeup_) wakeup_();
}

k8s::MonoTime WatchStream::next_timer() const {
  if (ended_) return k8s::MonoTime::never();
  return options_.bookmarks ? std::min(end_, next_bookmark_) : end_;
}

void WatchStream::on_timer(std::uint64_t revision) {
  if (ended_) return;
  const bool over = clock_.monotonic() >= end_;
  if (options_.bookmarks && (over || clock_.monotonic() >= next_bookmark_)) {
    send_bookmark(revision, false);
    next_bookmark_ = clock_.monotonic() + kBookmarkInterval;
  }
  if (over) {
    ended_ = true;
    wake();
  }
}

void WatchStream::reset() {
  if (ended_) return;
  buffer_.clear();
  ended_ = true;
  reset_ = true;
  wake();
}

void WatchStream::expire() {
  fail(too_old(options_.revision, options_.revision + 1));
}

void WatchStream::fail(const ApiError& error) {
  if (ended_) return;
  buffer_ += fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", error.to_json().dump());
  ended_ = true;
  wake();
}

bool WatchStream::matches(const Object& object) const {
  return (options_.ns.empty() || object.key().ns == options_.ns) && options_.labels.matches(object) &&
         options_.fields.matches(object);
}

void WatchStream::send(const char* type, const Object& object) {
  buffer_ += "{\"type\":\"";
  buffer_ += type;
  buffer_ += "\",\"object\":";
  buffer_ += render_object(*options_.resource, object, options_.format, clock_.now(), !sent_columns_);
  buffer_ += "}\n";
  sent_columns_ = true;
  wake();
}

void WatchStream::send_bookmark(std::uint64_t revision, bool initial_end) {
  nlohmann::json object = {{"kind", options_.resource->kind},
                           {"apiVersion", options_.resource->api_version()},
                           {"metadata", {{"resourceVersion", std::to_string(revision)}}}};
  if (initial_end) object["metadata"]["annotations"] = {{kInitialEventsEnd, "true"}};
  if (options_.format.as == Format::As::metadata) {
    object["kind"] = "PartialObjectMetadata";
    object["apiVersion"] = "meta.k8s.io/v1";
  } else if (options_.format.as == Format::As::table) {
    nlohmann::json row = {{"cells", nlohmann::json::array()}, {"object", object}};
    row["object"]["kind"] = "PartialObjectMetadata";
    row["object"]["apiVersion"] = "meta.k8s.io/v1";
    object = {{"kind", "Table"},
              {"apiVersion", "meta.k8s.io/v1"},
              {"metadata", {{"resourceVersion", std::to_string(revision)}}},
              {"columnDefinitions", nullptr},
              {"rows", {row}}};
  }
  buffer_ += fmt::format("{{\"type\":\"BOOKMARK\",\"object\":{}}}\n", object.dump());
  wake();
}

void WatchStream::on_event(const StoredEvent& event) {
  if (ended_ || (!options_.from_state && event.revision <= options_.revision)) return;
  const bool was = event.before != nullptr && matches(*event.before);
  const bool is = event.after != nullptr && matches(*event.after);
  if (!was && !is) return;
  if (filter_ && !filter_(event)) return;
  if (is) {
    send(was ? "MODIFIED" : "ADDED", *event.after);
    return;
  }
  if (event.removed != nullptr) {
    send("DELETED", *event.removed);
    return;
  }
  // It no longer matches the selector: the old state, with the revision of the change.
  nlohmann::json last = *event.before->parsed();
  last["metadata"]["resourceVersion"] = std::to_string(event.revision);
  send("DELETED", Object(std::move(last), {}));
}

void WatchStream::send_state(const Bucket::Objects& objects) {
  const auto [first, last] = Bucket::range(objects, options_.ns);
  for (auto it = first; it != last; ++it)
    if (matches(*it->second)) send("ADDED", *it->second);
}

void WatchStream::send_end_of_state(std::uint64_t revision) {
  if (options_.initial_events && options_.bookmarks) send_bookmark(revision, true);
}

WatchHub::WatchHub(Storage& storage, k8s::Clock& clock) : storage_(storage), clock_(clock) {
  storage_.add_listener([this](const std::string& bucket, const StoredEvent& event) { publish(bucket, event); });
}

void WatchHub::publish(const std::string& bucket, const StoredEvent& event) {
  auto it = watches_.find(bucket);
  if (it == watches_.end()) return;
  std::erase_if(it->second, [](const std::weak_ptr<WatchStream>& w) { return w.expired(); });
  const auto streams = it->second;  // A wakeup may open or close watches.
  for (const auto& weak : streams)
    if (auto stream = weak.lock()) stream->on_event(event);
}

std::shared_ptr<WatchStream> WatchHub::open(WatchOptions options) {
  const std::string name = options.resource->bucket;
  const Bucket& bucket = storage_.bucket(name);
  const std::uint64_t from = options.revision;
  const bool state = options.from_state;
  const std::optional<std::uint64_t> state_at = options.state_at;
  const auto past = state_at ? bucket.at(*state_at) : std::nullopt;
  auto stream = std::make_shared<WatchStream>(std::move(options), clock_);
  if (state) {
    stream->send_state(past ? *past : bucket.objects());
    for (const StoredEvent& event : bucket.events())
      if (past && event.revision > *state_at) stream->on_event(event);
    stream->send_end_of_state(storage_.revision());
  } else if (from < bucket.forgotten()) {
    stream->fail(too_old(from, bucket.forgotten()));
    return stream;
  } else {
    for (const StoredEvent& event : bucket.events())
      if (event.revision > from) stream->on_event(event);
  }
  watches_[name].push_back(stream);
  return stream;
}

void WatchHub::close_bucket(const std::string& bucket) {
  for (const auto& weak : watches_[bucket])
    if (auto stream = weak.lock()) stream->reset();
  watches_.erase(bucket);
}

void WatchHub::close_all() {
  const auto all = std::exchange(watches_, {});  // A wakeup may open watches.
  for (const auto& [bucket, streams] : all) {
    for (const auto& weak : streams)
      if (auto stream = weak.lock()) stream->reset();
  }
}

std::size_t WatchHub::open_watches() const {
  std::size_t count = 0;
  for (const auto& [bucket, streams] : watches_) {
    count += static_cast<std::size_t>(std::count_if(streams.begin(), streams.end(), [](const auto& w) {
      const auto stream = w.lock();
      return stream != nullptr && !stream->ended();
    }));
  }
  return count;
}

}  // namespace gso::sim
