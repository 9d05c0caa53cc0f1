// ReportingSink: passes a watch on to another sink, and reports when its view became complete or something failed.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "k8sclient/value/error.h"
#include "k8sclient/watch/watcher.h"

namespace gso {

class ReportingSink final : public k8s::WatchSink {
 public:
  struct Reports {
    std::function<void()> complete;                 // init_done or absent.
    std::function<void(const k8s::Error&)> failed;  // Any error; the watcher retries by itself.
  };
  ReportingSink(k8s::WatchSink* target, Reports reports) : target_(target), reports_(std::move(reports)) {}

  void init() override { target_->init(); }
  k8s::Result<void> init_apply(std::string_view json) override { return target_->init_apply(json); }
  k8s::Result<void> init_remove(std::string_view json) override { return target_->init_remove(json); }
  void init_done() override {
    target_->init_done();
    reports_.complete();
  }
  k8s::Result<void> apply(std::string_view json) override { return target_->apply(json); }
  k8s::Result<void> remove(std::string_view json) override { return target_->remove(json); }
  void absent() override {
    target_->absent();
    reports_.complete();
  }
  void skip(std::string_view metadata, const k8s::Error& why) override {
    target_->skip(metadata, why);
    reports_.failed(why);
  }
  void on_error(const k8s::Error& error) override {
    target_->on_error(error);
    reports_.failed(error);
  }
  void on_relist() override { target_->on_relist(); }

 private:
  k8s::WatchSink* target_;
  Reports reports_;
};

}  // namespace gso
