// The watch protocol as a value-to-value step: (state, input) -> (state, what to emit). No I/O, no clock; the driver
// is watcher.h. One arm per protocol rule.
//
//   Empty --WatchList opened--> InitialWatch --initial-events-end--> Watching <--opened--+
//     |                              | refused                          | ended, failed   |
//     +--started a LIST--> Listing <-+ (Empty, without WatchList)       +---> InitListed -+
//                            +--last page------------------------------------->  ^
//   any state --410 Gone, undecodable, silent, back in time, twice a future version--> Empty (relist)
//   InitListed --the view is to be renewed--> Empty (what is known stays trusted meanwhile)
//   InitListed --the API does not exist--> Empty
//
// InitListed keeps its resourceVersion while watches cannot be opened: a 5xx or a silence comes from the server's
// trouble, or from a load balancer before it, and a relist of every watch would only add to it. A relist is a
// consistent read, as the first view is: a view that is only as new as the known resourceVersion can be older than
// objects that were read live since. (It would spare the server nothing either: a WatchList is served from the watch
// cache at any version, and so are lists by current API servers; older ones read every list with a limit from etcd.)
//
// A server that was restored from a backup knows older resourceVersions than the watcher. It refuses a watch from a
// version of its future, or keeps it silent until it has caught up, which can take seconds, and then goes on as if
// nothing had been lost. So after a connection broke, the next watch is read only once a list of one object has shown
// two versions: the server's own, and that of the object that was seen changed last. What a server loses are its last
// writes, and so of each view the newest one first: where that is as it was seen, everything before it is. A server
// that has lost a second can be past the versions of that second when it answers again. A watch that is silent for
// longer than bookmarks take, and a second refusal, are relisted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"
#include "k8sclient/watch/watch_decoder.h"

namespace k8s {

// `seen` is the newest resourceVersion ever reached, kept over a relist to notice a server that went back in time.
struct Empty {
  std::string seen;
  friend bool operator==(const Empty&, const Empty&) = default;
};
struct Listing {
  std::string continue_token;  // Empty: the first page.
  std::string seen;
  friend bool operator==(const Listing&, const Listing&) = default;
};
struct InitialWatch {
  std::string seen;
  friend bool operator==(const InitialWatch&, const InitialWatch&) = default;
};
struct InitListed {
  std::string resource_version;
  int strikes = 0;  // Watches in a row that brought nothing.
  // The connection broke: the server that answers next can be one that was restored from a backup.
  bool doubtful = false;
  friend bool operator==(const InitListed&, const InitListed&) = default;
};
struct Watching {
  std::string resource_version;
  int strikes = 0;        // Of InitListed; zero after the first event or bookmark.
  bool progress = false;  // This watch brought an event or a bookmark.
  bool doubtful = false;  // Of InitListed, until the server's version is read.
  friend bool operator==(const Watching&, const Watching&) = default;
};
using WatchState = std::variant<Empty, Listing, InitialWatch, InitListed, Watching>;

// What the driver does next in a state.
enum class WatchAction { open_watch_list, start_list, list_page, read_version, open_watch, read };

struct Started {};  // Answers start_list.
struct PageRead {
  std::string resource_version;
  std::string continue_token;
};
// The newest change of a view: the version that its object had then, and has now in a list. Empty: it is not there.
struct NewestChange {
  std::string name;
  std::string seen;
  std::string found;
  bool deleted = false;
};
struct VersionRead {  // Of a list that has no other object than that of the newest change.
  std::string resource_version;
  std::optional<NewestChange> newest = std::nullopt;
};
struct Opened {};  // A watch is open, its status was 200.
struct EventRead {
  WatchEventType type = WatchEventType::added;
  std::string resource_version;
  bool initial_events_end = false;
  std::optional<Error> error = std::nullopt;  // Of an ERROR event.
};
// The stream ended, or was silent for longer than its idle deadline (`idle`). `lived`: since it was opened.
struct Ended {
  Duration lived{0};
  bool idle = false;
};
struct Failed {  // Listing, opening or reading failed.
  Error error;
};
struct Renew {};      // Between two watches: the view is older than the driver wants one to be.
struct ApiAbsent {};  // After WatchStep::maybe_absent: discovery confirms it.
using WatchInput = std::variant<Started, PageRead, VersionRead, Opened, EventRead, Ended, Failed, Renew, ApiAbsent>;

enum class WatchEmit { nothing, init, init_apply, init_remove, init_done, apply, remove };
// What a step learnt about WatchList.
enum class WatchListVerdict {
  unchanged,
  not_now,  // It broke on the way, was silent, or did not open in time: LIST this time.
  never,    // The server refuses or ignores it.
};
enum class WatchPause {
  none,
  backoff,  // Jittered exponential.
  refused,  // 403. Somebody may be granting the right just now, and the server is up: some 10 to 30 seconds.
  absent,   // 404. Only a CRD will help, and discovery finds that: about a minute.
};

struct WatchStep {
  WatchState next;
  WatchEmit emit = WatchEmit::nothing;
  WatchPause pause = WatchPause::none;
  std::optional<Error> report = std::nullopt;  // For WatcherOptions::failed.
  bool relist = false;        // A complete view was reached before: what was known is no longer trusted.
  bool maybe_absent = false;  // 404: ask discovery whether the API exists; if so, `report` is not for anybody.
  WatchListVerdict watch_list = WatchListVerdict::unchanged;
  friend bool operator==(const WatchStep&, const WatchStep&) = default;
};

// Watches in a row that end early without an event or bookmark, or are refused as invalid, before the watcher relists.
inline constexpr int kMaxStrikes = 4;
// Refusals in a row of a resourceVersion that is newer than the server's, before the watcher relists. The first can
// come from one of several API servers that is a moment behind the others.
inline constexpr int kMostFutureVersions = 2;
// The cause of a reported error: the server is behind what it said before (a restored etcd), so that what other watches
// of it have brought is as doubtful.
inline constexpr std::string_view kBackInTimeCause = "BackInTime";
// A watch shorter than this that brought nothing backs off.
inline constexpr Duration kShortWatch = std::chrono::seconds(1);

// `watch_list`: try sendInitialEvents. The driver changes it as WatchStep::watch_list says.
[[nodiscard]] WatchAction next_action(const WatchState& state, bool watch_list);
// An input that does not belong to the state leaves it unchanged.
[[nodiscard]] WatchStep step(WatchState state, const WatchInput& input);

}  // namespace k8s
