// StoreSink<T>: a WatchSink that projects each object and keeps a Store<T> in step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/api/object_json.h"
#include "k8sclient/value/error.h"
#include "k8sclient/watch/store.h"
#include "k8sclient/watch/watcher.h"

namespace k8s {

// A malformed object is counted and reported, and never ends the watch: the object that the store already had stays
// (over a relist too), so that one bad object cannot look like a deletion.
template <class T>
class StoreSink final : public WatchSink {
 public:
  using Projector = Result<T> (*)(std::string_view json);
  using ErrorListener = std::function<void(const Error&)>;

  // `store` must outlive the sink. `on_error` hears of watch errors and malformed objects.
  StoreSink(Store<T>* store, Projector project, ErrorListener on_error = {})
      : store_(store), project_(project), listener_(std::move(on_error)) {}
  // Before the first object; must outlive the sink.
  void limit(StoreBudget<T>* budget) { budget_ = budget; }

  void init() override {
    left_out_.list_begins();
    if (budget_ != nullptr) budget_->list_begins();
    store_->init();
  }
  Result<void> init_apply(std::string_view json) override {
    Result<T> object = project_(json);
    if (object) {
      if (budget_ == nullptr || budget_->take_from_list(*object)) {
        store_->init_apply(*std::move(object));
      } else {
        left_out_.add(object->meta.key());
      }
      return {};
    }
    const Result<ObjectKey> key = read_object_key(json);
    if (key) {
      if (const T* before = store_->find(*key)) store_->init_apply(*before);
    }
    return refused(key, object.error());
  }
  Result<void> init_remove(std::string_view json) override {
    const Result<ObjectKey> key = read_object_key(json);
    if (!key) return refused(key, key.error());
    left_out_.remove(*key);
    store_->init_erase(*key);
    return {};
  }
  void init_done() override {
    last_error_.reset();
    left_out_.list_ends();
    store_->init_done();
  }
  Result<void> apply(std::string_view json) override {
    Result<T> object = project_(json);
    if (!object) return refused(read_object_key(json), object.error());
    if (budget_ == nullptr || budget_->has_room(*object)) {
      if (left_out_.count() > 0) left_out_.remove(object->meta.key());
      store_->apply(*std::move(object));
    } else {
      left_out_.add(object->meta.key());
      store_->erase(object->meta.key());
    }
    return {};
  }
  Result<void> remove(std::string_view json) override {
    const Result<ObjectKey> key = read_object_key(json);
    if (!key) return refused(key, key.error());
    left_out_.remove(*key);
    store_->erase(*key);
    return {};
  }
  void absent() override {
    left_out_ = {};
    last_error_.reset();
    store_->mark_absent();
  }
  void skip(std::string_view metadata, const Error& why) override {
    const Result<ObjectKey> key = read_object_key(metadata);
    if (key) {
      if (const T* before = store_->find(*key)) store_->init_apply(*before);
    }
    if (listener_) listener_(why);
  }
  void on_error(const Error& error) override {
    last_error_ = error;
    if (listener_) listener_(error);
  }
  void on_relist() override { ++relists_; }

  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }
  [[nodiscard]] std::uint64_t relists() const { return relists_; }
  // The last error since the last complete view, for readiness and `status`.
  [[nodiscard]] const std::optional<Error>& last_error() const { return last_error_; }
  [[nodiscard]] const LeftOut& left_out() const { return left_out_; }

 private:
  Result<void> refused(const Result<ObjectKey>& key, const Error& why) {
    ++malformed_;
    const std::string name = key ? to_string(*key) : std::string("an object without a readable name");
    return fail(Reason::decode, name + " is kept as it was: " + why.message);
  }

  Store<T>* store_;
  Projector project_;
  ErrorListener listener_;
  StoreBudget<T>* budget_ = nullptr;  // Null: no limit.
  LeftOut left_out_;
  std::optional<Error> last_error_;
  std::uint64_t malformed_ = 0;
  std::uint64_t relists_ = 0;
};

}  // namespace k8s
