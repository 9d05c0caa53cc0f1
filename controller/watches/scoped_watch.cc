#include "controller/watches/scoped_watch.h"

namespace gso {

boost::asio::awaitable<void> ScopedWatch::run(std::shared_ptr<ScopedWatch> self) {
  co_await self->watcher_->run();
}

}  // namespace gso
