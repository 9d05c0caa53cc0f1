// Mirror: the objects of one watch as parsed JSON, with a listener for changes. The emulator looks at many fields of
// few kinds, so it keeps whole objects, unlike the operator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/watch/watcher.h"

namespace gso::sim {

using JsonPtr = std::shared_ptr<const nlohmann::json>;

class Mirror final : public k8s::WatchSink {
 public:
  // `before` or `after` is null for an addition or a removal. Called after the mirror changed.
  using Listener = std::function<void(const k8s::ObjectKey&, const JsonPtr& before, const JsonPtr& after)>;

  void init() override { buffer_.clear(); }
  k8s::Result<void> init_apply(std::string_view json) override;
  k8s::Result<void> init_remove(std::string_view json) override;
  void init_done() override;
  k8s::Result<void> apply(std::string_view json) override;
  k8s::Result<void> remove(std::string_view json) override;
  void absent() override;

  // WatcherOptions::failed
  void note_error(const k8s::Error& error) { last_error_ = error.message; }
  void add_listener(Listener listener) { listeners_.push_back(std::move(listener)); }
  // nullptr when there is none.
  [[nodiscard]] JsonPtr find(const k8s::ObjectKey& key) const;
  [[nodiscard]] const std::map<k8s::ObjectKey, JsonPtr>& all() const { return objects_; }
  // True from the first complete view on, or when the API is not served.
  [[nodiscard]] bool synced() const { return synced_; }
  // False while discovery says that the server does not have this API.
  [[nodiscard]] bool served() const { return served_; }
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  void notify(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after);

  std::map<k8s::ObjectKey, JsonPtr> objects_;
  std::map<k8s::ObjectKey, JsonPtr> buffer_;
  std::vector<Listener> listeners_;
  std::string last_error_;
  bool synced_ = false;
  bool served_ = false;
};

}  // namespace gso::sim
