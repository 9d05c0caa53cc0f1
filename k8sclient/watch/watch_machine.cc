#include "k8sclient/watch/watch_machine.h"

#include <fmt/format.h>

#include <utility>

#include "k8sclient/value/overloaded.h"

namespace k8s {
namespace {

WatchStep stay(WatchState state) {
  return {.next = std::move(state)};
}

// A failure that leaves the watcher in `next`: the reported error, and how long the watcher waits.
WatchStep failed(WatchState next, Error error) {
  WatchStep out{.next = std::move(next)};
  out.pause = error.reason == Reason::forbidden   ? WatchPause::refused
              : error.reason == Reason::not_found ? WatchPause::absent
                                                  : WatchPause::backoff;
  out.maybe_absent = error.reason == Reason::not_found;
  out.report = std::move(error);
  return out;
}

WatchStep relist(std::string seen, Error error) {
  WatchStep out = failed(Empty{std::move(seen)}, std::move(error));
  out.relist = true;
  return out;
}

Error back_in_time(std::string message) {
  Error out{Reason::expired, 0, std::move(message)};
  out.causes.push_back({std::string(kBackInTimeCause), "", ""});
  return out;
}

// A complete view as of `resource_version`. A server that is behind what it said before (a restored etcd) is believed,
// but not silently.
WatchStep complete(WatchState next, const std::string& resource_version, const std::string& seen) {
  WatchStep out{.next = std::move(next), .emit = WatchEmit::init_done};
  if (older(resource_version, seen)) {
    out.report = back_in_time(
        fmt::format("the server went back in time: its list is at resourceVersion {}, {} was seen before (a restored "
                    "etcd?); the list is taken as the truth",
                    resource_version, seen));
  }
  return out;
}

// The server does not have this resourceVersion yet (apimachinery's NewTooLargeResourceVersionError).
bool is_of_the_future(const Error& error) {
  return has_cause(error, "ResourceVersionTooLarge");
}

// A watch from `resource_version` failed or brought nothing.
WatchStep strike(const std::string& resource_version, int strikes, std::optional<Error> error) {
  const int most = error && is_of_the_future(*error) ? kMostFutureVersions : kMaxStrikes;
  if (strikes + 1 >= most) {
    return relist(resource_version, error.value_or(Error{Reason::timeout, 0,
                                                         fmt::format("{} watches in a row brought neither event nor "
                                                                     "bookmark",
                                                                     kMaxStrikes)}));
  }
  WatchStep out{.next = InitListed{resource_version, strikes + 1}, .pause = WatchPause::backoff};
  out.report = std::move(error);
  return out;
}

// --- Empty ---

WatchStep on(Empty state, const Started&) {
  return {.next = Listing{"", std::move(state.seen)}, .emit = WatchEmit::init};
}
WatchStep on(Empty state, const Opened&) {
  return {.next = InitialWatch{std::move(state.seen)}, .emit = WatchEmit::init};
}
// Only opening a WatchList can fail here. A server without it says 400, 422 or the like: no news for anybody.
WatchStep on(Empty state, const Failed& input) {
  if (input.error.reason == Reason::invalid) return {.next = std::move(state), .watch_list = WatchListVerdict::never};
  WatchStep out = failed(std::move(state), input.error);
  if (input.error.reason == Reason::timeout) out.watch_list = WatchListVerdict::not_now;
  return out;
}

// --- Listing ---

WatchStep on(Listing state, const PageRead& input) {
  if (!input.continue_token.empty()) return stay(Listing{input.continue_token, std::move(state.seen)});
  return complete(InitListed{input.resource_version}, input.resource_version, state.seen);
}
WatchStep on(Listing state, const Failed& input) {
  switch (input.error.reason) {
    case Reason::expired:  // The continue token is older than etcd's compaction.
    case Reason::decode:   // Nobody knows what was missed.
    case Reason::invalid:
    case Reason::forbidden:
    case Reason::not_found:
      return failed(Empty{std::move(state.seen)}, input.error);
    default:
      return failed(std::move(state), input.error);  // The same page again.
  }
}

// --- InitialWatch ---

// A stream that fails before its end marker is worth nothing; LIST is the way that always works.
WatchStep start_over(InitialWatch state, std::optional<Error> error, WatchListVerdict verdict) {
  Empty next{std::move(state.seen)};
  WatchStep out = error ? failed(std::move(next), *std::move(error))
                        : WatchStep{.next = std::move(next), .pause = WatchPause::backoff};
  out.watch_list = verdict;
  return out;
}

WatchStep on(InitialWatch state, const EventRead& input) {
  switch (input.type) {
    case WatchEventType::added:
    case WatchEventType::modified:
      return {.next = std::move(state), .emit = WatchEmit::init_apply};
    case WatchEventType::deleted:
      return {.next = std::move(state), .emit = WatchEmit::init_remove};
    case WatchEventType::bookmark:
      if (input.initial_events_end)
        return complete(Watching{input.resource_version, 0, true}, input.resource_version, state.seen);
      // A server that ignores sendInitialEvents sends plain bookmarks and never the mark.
      return {.next = Empty{std::move(state.seen)}, .watch_list = WatchListVerdict::never};
    case WatchEventType::error: {
      const bool refused = input.error && input.error->reason == Reason::invalid;
      return start_over(std::move(state), input.error, refused ? WatchListVerdict::never : WatchListVerdict::not_now);
    }
  }
  return stay(std::move(state));
}
// Silence as well: on a loaded server of 5,000 nodes, initial events take up to a minute (KEP-3157).
WatchStep on(InitialWatch state, const Ended&) {
  return start_over(std::move(state), std::nullopt, WatchListVerdict::not_now);
}
WatchStep on(InitialWatch state, const Failed& input) {
  return start_over(std::move(state), input.error, WatchListVerdict::not_now);
}

// --- InitListed ---

WatchStep on(InitListed state, const Opened&) {
  return stay(Watching{std::move(state.resource_version), state.strikes, false, state.doubtful});
}
WatchStep on(InitListed state, const Failed& input) {
  if (input.error.reason == Reason::transport) state.doubtful = true;
  if (is_of_the_future(input.error)) return strike(state.resource_version, state.strikes, input.error);
  switch (input.error.reason) {
    case Reason::expired:
      return relist(std::move(state.resource_version), input.error);
    case Reason::timeout:
    case Reason::unavailable:
    case Reason::not_found:  // A proxy's, unless discovery confirms it: then ApiAbsent follows.
    case Reason::forbidden:
    case Reason::unauthorized:
    case Reason::too_many_requests:
    case Reason::transport:
      return failed(std::move(state), input.error);  // The error does not concern the known resourceVersion.
    default:
      return strike(state.resource_version, state.strikes, input.error);
  }
}
WatchStep on(InitListed state, const Renew&) {
  return stay(Empty{std::move(state.resource_version)});
}
WatchStep on(InitListed state, const ApiAbsent&) {
  return stay(Empty{std::move(state.resource_version)});
}

// --- Watching ---

WatchStep on(Watching state, const VersionRead& input) {
  if (older(input.resource_version, state.resource_version)) {
    return relist(state.resource_version,
                  back_in_time(fmt::format("the server went back in time, from resourceVersion {} to {}",
                                           state.resource_version, input.resource_version)));
  }
  if (const auto& newest = input.newest) {
    if (older(newest->found, newest->seen)) {
      return relist(std::move(state.resource_version),
                    back_in_time(fmt::format("the server went back in time: {} is at resourceVersion {}, {} was seen "
                                             "before",
                                             newest->name, newest->found, newest->seen)));
    }
    // A newer one, or none, is the usual change meanwhile, or one that was made after a loss. A list is right for both.
    const bool kept = newest->found == (newest->deleted ? std::string() : newest->seen);
    if (!kept) return stay(Empty{std::move(state.resource_version)});
  }
  state.doubtful = false;
  return stay(std::move(state));
}

WatchStep on(Watching state, const EventRead& input) {
  if (input.type == WatchEventType::error) {
    const Error error = input.error.value_or(Error{Reason::unavailable, 0, "the watch ended with an error"});
    if (error.reason == Reason::expired) return relist(std::move(state.resource_version), error);
    return strike(state.resource_version, state.strikes, error);
  }
  if (older(input.resource_version, state.resource_version)) {
    return relist(state.resource_version,
                  back_in_time(fmt::format("the watch went back in time, from resourceVersion {} to {}",
                                           state.resource_version, input.resource_version)));
  }
  WatchStep out{.next = Watching{input.resource_version, 0, true}};
  if (input.type == WatchEventType::deleted) out.emit = WatchEmit::remove;
  if (input.type == WatchEventType::added || input.type == WatchEventType::modified) out.emit = WatchEmit::apply;
  return out;
}
WatchStep on(Watching state, const Ended& input) {
  if (input.idle && !state.progress) {
    return relist(std::move(state.resource_version),
                  Error{Reason::timeout, 0,
                        "the watch brought neither an event nor a bookmark, although bookmarks come every minute"});
  }
  if (state.progress) {
    // Silence is how the connection to a machine that has lost its power ends.
    WatchStep out = stay(InitListed{std::move(state.resource_version), 0, input.idle});
    // Short watches with a bookmark each would otherwise spin.
    if (input.lived < kShortWatch) out.pause = WatchPause::backoff;
    return out;
  }
  return strike(state.resource_version, state.strikes, std::nullopt);
}
WatchStep on(Watching state, const Failed& input) {
  if (input.error.reason == Reason::decode || input.error.reason == Reason::expired)
    return relist(std::move(state.resource_version), input.error);
  if (state.doubtful && input.error.reason == Reason::forbidden) {  // The list is: the watch is all that there is.
    state.doubtful = false;
    return stay(std::move(state));
  }
  const bool broke = state.doubtful || input.error.reason == Reason::transport;
  return failed(InitListed{std::move(state.resource_version), state.strikes, broke}, input.error);
}

}  // namespace

WatchAction next_action(const WatchState& state, bool watch_list) {
  return std::visit(
      Overloaded{
          [watch_list](const Empty&) { return watch_list ? WatchAction::open_watch_list : WatchAction::start_list; },
          [](const Listing&) { return WatchAction::list_page; },
          [](const InitialWatch&) { return WatchAction::read; },
          [](const InitListed&) { return WatchAction::open_watch; },
          [](const Watching& s) { return s.doubtful ? WatchAction::read_version : WatchAction::read; },
      },
      state);
}

WatchStep step(WatchState state, const WatchInput& input) {
  return std::visit(
      []<class S, class I>(S&& from, const I& in) -> WatchStep {
        // An arm that no pair reaches is a function that nobody uses, which the compiler reports.
        if constexpr (requires { on(std::forward<S>(from), in); }) return on(std::forward<S>(from), in);
        return stay(std::forward<S>(from));
      },
      std::move(state), input);
}

}  // namespace k8s
