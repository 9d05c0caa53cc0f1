#include "k8sclient/watch/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "k8sclient/api/status.h"

namespace k8s {

namespace asio = boost::asio;

Watcher::Watcher(Reader* client, Gvr gvr, WatcherOptions options, WatchSink* sink)
    : client_(client),
      clock_(client->clock()),
      gvr_(std::move(gvr)),
      options_(std::move(options)),
      sink_(sink),
      watch_list_(options_.watch_list),
      jitter_(options_.seed),
      wake_(clock_->make_signal()) {}

asio::awaitable<void> Watcher::run() {
  if (stopping_) co_return;
  running_ = true;
  // The loop has a cancellation slot of its own, so that stop() reaches whatever it waits for. Cancelling the
  // coroutine that awaits run() comes to the same.
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::cancellation_state outer = co_await asio::this_coro::cancellation_state;
  if (outer.slot().is_connected()) outer.slot().assign([this](asio::cancellation_type) { stop(); });
  do {
    if (std::exchange(distrusted_, false)) start_over();
    try {
      co_await asio::co_spawn(executor, loop(), asio::bind_cancellation_slot(cancel_.slot(), asio::use_awaitable));
    } catch (const boost::system::system_error&) {
      // Cancellation is how stop() and list_again() arrive; anything else is a fault of the program.
      if (!stopping_ && !distrusted_) throw;
    }
  } while (!stopping_);
  if (outer.slot().is_connected()) outer.slot().clear();
  stream_.reset();
  running_ = false;
}

void Watcher::stop() {
  if (std::exchange(stopping_, true)) return;
  cancel_.emit(asio::cancellation_type::terminal);
}

void Watcher::list_again() {
  if (stopping_ || std::exchange(distrusted_, true)) return;
  complete_ = false;
  if (api_ == ApiState::absent) api_ = ApiState::unknown;
  if (running_) cancel_.emit(asio::cancellation_type::terminal);
}

// What was seen before says nothing about what is to come: its list is not compared with it.
void Watcher::start_over() {
  state_ = Empty{};
  stream_.reset();
  decoder_ = WatchDecoder(options_.max_line);
  ++stats_.relists;
  sink_->on_relist();
}

void Watcher::retry_now() {
  if (api_ == ApiState::absent) wake_->notify();
}

asio::awaitable<void> Watcher::loop() {
  // Asio 1.26: a co_spawned coroutine that is cancelled and ends before its first suspension throws out of the
  // io_context. A sink may call stop() that early.
  co_await asio::post(asio::use_awaitable);
  while (!stopping_ && !distrusted_) {
    std::optional<WatchInput> input = buffered_event();
    if (!input && std::holds_alternative<InitListed>(state_) && must_list()) input = Renew{};
    const WatchAction ask = next_action(state_, watch_list_);
    if (!input && ask == WatchAction::start_list) input = Started{};
    if (!input) input = co_await perform(ask);
    if (stopping_ || distrusted_) co_return;
    count(*input);
    WatchStep outcome = step(std::move(state_), *input);
    take(outcome);
    if (stopping_ || distrusted_) co_return;
    WatchPause kind = outcome.pause;
    const std::optional<Error> error = outcome.report;
    if (error) kind = co_await report(std::move(outcome));
    if (stopping_ || distrusted_) co_return;
    if (kind != WatchPause::none) co_await pause(kind, error);
  }
}

// Everything of a step that needs no waiting: the new state, the rules, the sink's calls, the stream's end.
void Watcher::take(const WatchStep& outcome) {
  state_ = outcome.next;
  if (outcome.watch_list != WatchListVerdict::unchanged) watch_list_ = false;
  if (outcome.watch_list == WatchListVerdict::never) options_.watch_list = false;
  if (outcome.emit == WatchEmit::init_done) watch_list_ = options_.watch_list;
  // A watch that continues soon after the last event misses nothing.
  const auto* watching = std::get_if<Watching>(&state_);
  const bool continues = watching != nullptr && !watching->doubtful && confirmed_at_ &&
                         clock_->monotonic() - *confirmed_at_ <= options_.max_age;
  if (continues || outcome.report) delivers_ = !outcome.report;
  if (outcome.relist) {
    ++stats_.relists;
    sink_->on_relist();
  }
  if (!stopping_) emit(outcome.emit);
  const bool streaming = std::holds_alternative<InitialWatch>(state_) || std::holds_alternative<Watching>(state_);
  if (streaming) return;
  stream_.reset();
  decoder_ = WatchDecoder(options_.max_line);
}

void Watcher::skip(std::string_view metadata, Error why) {
  ++stats_.too_large;
  if (stopping_) return;
  const Error error = named(std::move(why));
  sink_->skip(metadata, error);
  options_.failed(error);
}

Error Watcher::named(Error error) const {
  return prefixed("watch " + gvr_.resource, std::move(error));
}

void Watcher::emit(WatchEmit what) {
  if (current_skipped_ > 0 && (what == WatchEmit::apply || what == WatchEmit::init_apply)) {
    const Result<ObjectKey> key = read_object_key(current_object_);
    return skip(current_object_,
                {Reason::too_large, 0,
                 fmt::format("{} is kept as it was: {} bytes are more than the {} that are read",
                             key ? to_string(*key) : "an object without a name", current_skipped_, options_.max_line)});
  }
  switch (what) {
    case WatchEmit::nothing:
      return;
    case WatchEmit::init:
      newest_.reset();
      return sink_->init();
    case WatchEmit::init_apply:
      return deliver(sink_->init_apply(current_object_));
    case WatchEmit::init_remove:
      return deliver(sink_->init_remove(current_object_));
    case WatchEmit::init_done:
      ++stats_.lists;
      failed_at_.reset();
      confirm(std::holds_alternative<Watching>(state_));
      sink_->init_done();
      return options_.complete();
    case WatchEmit::apply:
      return deliver(sink_->apply(current_object_));
    case WatchEmit::remove:
      return deliver(sink_->remove(current_object_));
  }
}

void Watcher::deliver(const Result<void>& result) {
  if (result) return;
  ++stats_.malformed;
  if (!stopping_) report(named(result.error()));
}

void Watcher::report(const Error& error) {
  failed_at_ = opened();
  options_.failed(error);
}

// A 404 is an absent API only when discovery says so; a proxy's 404 must not empty a store. Returns how to pause.
asio::awaitable<WatchPause> Watcher::report(WatchStep outcome) {
  if (outcome.maybe_absent) {
    const Result<bool> served = co_await client_->served(gvr_);
    if (stopping_) co_return outcome.pause;
    if (served && !*served) {
      state_ = step(std::move(state_), ApiAbsent{}).next;
      failed_at_.reset();
      complete_ = false;
      api_ = ApiState::absent;
      confirmed_at_ = clock_->monotonic();
      sink_->absent();
      options_.complete();
      co_return outcome.pause;
    }
    if (served) outcome.pause = WatchPause::backoff;  // A CRD that was installed just now.
  }
  report(*outcome.report);
  co_return outcome.pause;
}

asio::awaitable<WatchInput> Watcher::perform(WatchAction ask) {
  switch (ask) {
    case WatchAction::list_page:
      return list_page();
    case WatchAction::read_version:
      return read_version();
    case WatchAction::open_watch_list:
      return open(true);
    case WatchAction::open_watch:
      return open(false);
    default:
      return read();
  }
}

template <class Options>
Options Watcher::of_scope() const {
  Options out;
  out.ns = options_.ns;
  out.label_selector = options_.label_selector;
  out.field_selector = options_.field_selector;
  return out;
}

asio::awaitable<WatchInput> Watcher::list_page() {
  auto options = of_scope<ListOptions>();
  ItemFunction items(
      [this](std::optional<std::string_view> json) -> Result<void> {
        if (stopping_) return fail(Reason::cancelled, "the watcher was stopped");
        note_newest(*json, read_resource_version(*json), false);
        deliver(sink_->init_apply(*json));
        return {};
      },
      [this](std::string_view metadata, Error why) {
        note_newest(metadata, read_resource_version(metadata), false);
        skip(metadata, std::move(why));
      });
  Result<ListPage> page =
      co_await client_->list_page(gvr_, std::move(options), std::get<Listing>(state_).continue_token, &items);
  if (!page) co_return Failed{page.error()};
  co_return PageRead{std::move(page->resource_version), std::move(page->continue_token)};
}

asio::awaitable<WatchInput> Watcher::open(bool initial_events) {
  std::uniform_int_distribution<std::int64_t> timeouts(options_.min_timeout.count(),
                                                       std::max(options_.min_timeout, options_.max_timeout).count());
  auto options = of_scope<WatchOptions>();
  options.send_initial_events = initial_events;
  options.protobuf = options_.protobuf;
  options.timeout = std::chrono::seconds(timeouts(jitter_.random()));
  if (!initial_events) options.resource_version = std::get<InitListed>(state_).resource_version;
  const std::chrono::seconds life = options.timeout + options_.timeout_margin;
  Result<std::unique_ptr<ByteStream>> stream = co_await client_->open_watch(gvr_, std::move(options));
  if (!stream) co_return open_failed(stream.error());
  opening_ = Opening::works;
  ++stats_.watches;
  stream_ = *std::move(stream);
  const bool protobuf = stream_->header("content-type").starts_with("application/vnd.kubernetes.protobuf");
  decoder_ = WatchDecoder(options_.max_line, protobuf ? WatchEncoding::protobuf : WatchEncoding::json);
  opened_at_ = clock_->monotonic();
  stream_deadline_ = opened_at_ + life;
  co_return Opened{};
}

// In an outage nothing is answered, and it must not end in a relist of everything.
Failed Watcher::open_failed(Error error) {
  const bool others_answered = client_->answers() != std::exchange(answers_, client_->answers());
  const bool server_fails = error.reason == Reason::unavailable || error.reason == Reason::timeout;
  const bool refused = error.reason == Reason::forbidden || (server_fails && others_answered);
  opening_ = refused ? Opening::refused : Opening::fails;
  return {std::move(error)};
}

// Between two watches.
bool Watcher::must_list() {
  const MonoTime now = clock_->monotonic();
  if (opening_ == Opening::works) return now >= renew_at_;
  const MonoTime known = std::max(listed_at_, confirmed_at_.value_or(listed_at_));
  if (opening_ == Opening::fails || now - known < options_.list_after) return false;
  watch_list_ = false;  // That is a watch, too.
  return true;
}

// The next event that is already here, without waiting.
std::optional<WatchInput> Watcher::buffered_event() {
  if (stream_ == nullptr) return std::nullopt;
  std::optional<Result<WatchEvent>> event = decoder_.next();
  if (!event) return std::nullopt;
  if (!*event) return Failed{named(event->error())};
  WatchEvent& read = **event;
  current_object_ = read.object;
  current_skipped_ = read.skipped_bytes;
  EventRead input{read.type, std::move(read.resource_version), read.initial_events_end};
  if (read.type == WatchEventType::error) input.error = error_from_answer(0, read.object, "", "watch " + gvr_.resource);
  return input;
}

asio::awaitable<WatchInput> Watcher::read() {
  const bool initial = std::holds_alternative<InitialWatch>(state_);
  const Duration gap = initial ? options_.initial_gap : options_.bookmark_gap;
  while (true) {
    const MonoTime now = clock_->monotonic();
    const Duration left = stream_deadline_ - now;
    if (left <= Duration::zero()) co_return Ended{now - opened_at_, true};
    const auto idle = std::chrono::ceil<std::chrono::milliseconds>(std::min(gap, left));
    Result<std::string> chunk = co_await stream_->read(idle);
    const Duration lived = clock_->monotonic() - opened_at_;
    if (!chunk && chunk.error().reason == Reason::timeout) co_return Ended{lived, true};
    if (!chunk) co_return Failed{named(chunk.error())};
    if (chunk->empty()) co_return Ended{lived, false};
    decoder_.feed(*chunk);
    stream_->reuse(*std::move(chunk));
    std::optional<WatchInput> event = buffered_event();
    if (event) co_return *std::move(event);
  }
}

void Watcher::count(const WatchInput& input) {
  const auto* event = std::get_if<EventRead>(&input);
  if (event == nullptr || event->type == WatchEventType::error) return;
  if (event->type != WatchEventType::bookmark)
    note_newest(current_object_, event->resource_version, event->type == WatchEventType::deleted);
  if (std::holds_alternative<Watching>(state_)) {
    confirmed_at_ = clock_->monotonic();
    delivers_ = true;
  }
  ++(event->type == WatchEventType::bookmark ? stats_.bookmarks : stats_.events);
}

asio::awaitable<void> Watcher::pause(WatchPause kind, std::optional<Error> error) {
  Duration delay = kind == WatchPause::refused  ? jitter_(options_.refused_retry, 1.0, 3.0)
                   : kind == WatchPause::absent ? jitter_(options_.absent_retry, 1.0, 1.5)
                                                : next_backoff();
  if (error && error->retry_after) delay = std::max<Duration>(delay, *error->retry_after);
  bool woken = co_await wake_->wait_until(clock_->monotonic() + delay);
  // Discovery is asked again first: that is a request on a shared connection, where a watch has a connection of its
  // own, with a handshake, for another 404.
  while (kind == WatchPause::absent && !woken && !stopping_) {
    const Result<bool> served = co_await client_->served(gvr_);
    if (stopping_ || !served || *served) break;
    confirmed_at_ = clock_->monotonic();
    woken = co_await wake_->wait_until(clock_->monotonic() + jitter_(options_.absent_retry, 1.0, 1.5));
  }
  // Until the next list says what there is, nothing is known.
  if (api_ == ApiState::absent) api_ = ApiState::unknown;
}

Duration Watcher::next_backoff() {
  const MonoTime now = clock_->monotonic();
  if (now - last_failure_ > options_.backoff_reset) failures_ = 0;
  const Duration grown = Backoff{options_.first_backoff, options_.last_backoff}.after(failures_++);
  last_failure_ = now;
  return std::min(jitter_(grown, 1.0, 2.0), options_.last_backoff);
}

// --- What can be concluded from a watcher's view: when it was confirmed, and whether the server still has what it
// shows.

void Watcher::confirm(bool by_watch) {
  const MonoTime now = clock_->monotonic();
  listed_at_ = now;
  renew_at_ =
      options_.renew_after <= Duration::zero() ? MonoTime::never() : now + jitter_(options_.renew_after, 0.8, 1.0);
  api_ = ApiState::served;
  // A list replaces no watch that fails: it is as old as the time until the next one.
  if (by_watch || !complete_) {
    confirmed_at_ = now;
    delivers_ = true;
  }
  complete_ = true;
}

View Watcher::view() const {
  const bool absent = api_ == ApiState::absent;
  const MonoTime now = clock_->monotonic();
  const bool confirmed = confirmed_at_ && now - *confirmed_at_ <= options_.max_age;
  if (absent && confirmed) return {ViewState::current, confirmed_at_};
  if (!complete_ || !confirmed_at_) return {ViewState::unread, confirmed_at_};
  if (confirmed && delivers_) return {ViewState::current, confirmed_at_};
  const bool recent = confirmed || now - listed_at_ <= options_.max_age;
  return {recent ? ViewState::recent : ViewState::stale, confirmed_at_};
}

// The initial objects of a view come in the order of their names.
void Watcher::note_newest(std::string_view object, const std::string& resource_version, bool deleted) {
  if (newest_ && older(resource_version, newest_->resource_version)) return;
  if (Result<ObjectKey> key = read_object_key(object)) newest_ = Newest{*std::move(key), resource_version, deleted};
}

boost::asio::awaitable<WatchInput> Watcher::read_version() {
  auto options = of_scope<ListOptions>();
  options.page_limit = 1;
  const Newest newest = newest_.value_or(Newest{});
  if (newest_) {
    options.ns = newest.key.ns;
    options.field_selector.terms.emplace_back("metadata.name", newest.key.name);
  }
  std::string found;
  // Some servers do not know the selector, and list another object.
  const auto look = [&](std::string_view object) {
    if (const auto key = read_object_key(object); key && *key == newest.key) found = read_resource_version(object);
  };
  ItemFunction items(
      [&look](std::optional<std::string_view> json) -> Result<void> {
        look(*json);
        return {};
      },
      [&look](std::string_view metadata, const Error& /*why*/) { look(metadata); });
  Result<ListPage> page = co_await client_->list_page(gvr_, std::move(options), "", &items);
  if (!page) co_return Failed{page.error()};
  VersionRead read{std::move(page->resource_version)};
  if (newest_) read.newest = NewestChange{to_string(newest.key), newest.resource_version, found, newest.deleted};
  co_return read;
}

}  // namespace k8s
