// What can be concluded from a watcher's view: when it was confirmed, and whether the server still has what it shows.
#include <algorithm>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "k8sclient/watch/watcher.h"

namespace k8s {

// The version of one object, empty: it is not there. Some servers do not know the selector, and list another one.
class Watcher::VersionSink final : public ItemSink {
 public:
  explicit VersionSink(ObjectKey key) : key_(std::move(key)) {}
  void restart() override { version.clear(); }
  Result<void> item(std::string_view json) override {
    if (const auto key = read_object_key(json); key && *key == key_) version = read_resource_version(json);
    return {};
  }
  Result<void> skipped(std::string_view metadata, Error) override { return item(metadata); }

  std::string version;

 private:
  ObjectKey key_;
};

void Watcher::confirm(bool by_watch) {
  const MonoTime now = clock_->monotonic();
  listed_at_ = now;
  std::uniform_real_distribution<double> factor(0.8, 1.0);
  renew_at_ = options_.renew_after <= Duration::zero()
                  ? MonoTime::never()
                  : now + std::chrono::duration_cast<Duration>(options_.renew_after * factor(random_));
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
  ListOptions options;
  options.ns = options_.ns;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  options.page_limit = 1;
  const Newest newest = newest_.value_or(Newest{});
  if (newest_) {
    options.ns = newest.key.ns;
    options.field_selector.terms.push_back({"metadata.name", newest.key.name});
  }
  VersionSink items(newest.key);
  Result<ListPage> page = co_await client_->list_page(gvr_, std::move(options), "", &items);
  if (!page) co_return Failed{page.error()};
  VersionRead read{std::move(page->resource_version)};
  if (newest_)
    read.newest = NewestChange{to_string(newest.key), newest.resource_version, items.version, newest.deleted};
  co_return read;
}

}  // namespace k8s
