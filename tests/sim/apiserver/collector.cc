// Garbage collection and namespaces, a short while after the change that asks for it.
#include "tests/sim/apiserver/collector.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/disruption.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr const char* kBudgets = "poddisruptionbudgets.policy";

bool has_finalizer(const json& object, const char* finalizer) {
  const json list = object["metadata"].value("finalizers", json::array());
  return std::find(list.begin(), list.end(), json(finalizer)) != list.end();
}

void drop_finalizer(json& object, const char* finalizer) {
  auto& list = object["metadata"]["finalizers"].get_ref<json::array_t&>();
  std::erase(list, json(finalizer));
  if (list.empty()) object["metadata"].erase("finalizers");
}

}  // namespace

Collector::Collector(boost::asio::any_io_executor executor, k8s::Clock& clock, Registry& registry, Storage& storage,
                     Writer& writer, Options options, std::function<void()> flush)
    : clock_(clock),
      registry_(registry),
      storage_(storage),
      writer_(writer),
      options_(options),
      flush_(std::move(flush)),
      wakeup_(std::make_shared<Wakeup>()) {
  wakeup_->signal = clock.make_signal();
  storage_.add_listener([this](const std::string& bucket, const StoredEvent& event) { on_event(bucket, event); });
  boost::asio::co_spawn(executor, run(this, wakeup_, &clock, options_.delay), boost::asio::detached);
}

Collector::~Collector() {
  wakeup_->stopped = true;
  wakeup_->signal->notify();
}

boost::asio::awaitable<void> Collector::run(Collector* self, std::shared_ptr<Wakeup> wakeup, k8s::Clock* clock,
                                            k8s::Duration delay) {
  while (!wakeup->stopped) {
    (void)co_await wakeup->signal->wait();
    if (wakeup->stopped) co_return;
    co_await clock->sleep_for(delay);
    if (!wakeup->stopped) self->round();
  }
}

ResourcePtr Collector::resource_of(const std::string& bucket) const {
  for (const auto& r : registry_.all())
    if (r->bucket == bucket && r->api_version() == r->storage_version) return r;
  return nullptr;
}

void Collector::on_event(const std::string& bucket, const StoredEvent& event) {
  const Object& any = event.after != nullptr ? *event.after : *event.before;
  const Location at{bucket, any.key()};
  bool work = false;
  if (event.before != nullptr)
    for (const auto& owner : event.before->owner_uids()) dependents_[owner].erase(at);
  if (event.after == nullptr) {
    alive_.erase(any.uid());
    if (auto it = dependents_.find(any.uid()); it != dependents_.end()) {
      work |= !it->second.empty();
      work_.dependents.insert(it->second.begin(), it->second.end());
      if (it->second.empty()) dependents_.erase(it);
    }
    for (const auto& owner : event.before->owner_uids()) {  // A foreground deletion may wait for this one.
      auto it = alive_.find(owner);
      if (it != alive_.end()) work |= work_.deleting.insert(it->second).second;
    }
    if (auto ns = storage_.bucket("namespaces").find({"", any.key().ns}); ns != nullptr && ns->deleting())
      work |= work_.namespaces.insert(any.key().ns).second;
  } else {
    alive_[any.uid()] = at;
    for (const auto& owner : any.owner_uids()) {
      dependents_[owner].insert(at);
      if (!alive_.contains(owner)) work |= work_.dependents.insert(at).second;
    }
    if (any.deleting()) work |= work_.deleting.insert(at).second;
    if (bucket == "namespaces" && (event.before == nullptr || any.deleting()))
      work |= work_.namespaces.insert(any.key().name).second;
  }
  const bool budgets = bucket == kBudgets || (bucket == "pods" && has_budgets(any.key().ns));
  if (budgets) work |= work_.budgets.insert(any.key().ns).second;
  if (work) wakeup_->signal->notify();
}

bool Collector::has_budgets(const std::string& ns) const {
  const auto& all = storage_.bucket(kBudgets).objects();
  const auto [first, last] = Bucket::range(all, ns);
  return first != last;
}

void Collector::count_budgets(const std::string& ns) {
  const ResourcePtr resource = resource_of(kBudgets);
  std::vector<ObjectPtr> budgets;
  const auto [first, last] = Bucket::range(storage_.bucket(kBudgets).objects(), ns);
  for (auto it = first; it != last; ++it) budgets.push_back(it->second);
  for (const auto& budget : budgets) {
    json object = *budget->parsed();
    json status = budget_status(object, storage_.bucket("pods"), clock_.now());
    if (status == object["status"]) continue;
    object["status"] = std::move(status);
    writer_.replace_object(resource, budget, std::move(object));
  }
}

void Collector::round() {
  const Work work = std::exchange(work_, {});
  for (const auto& at : work.dependents) collect_dependent(at);
  for (const auto& at : work.deleting) finish_deletion(at);
  for (const auto& name : work.namespaces) tend_namespace(name);
  for (const auto& ns : work.budgets) count_budgets(ns);
  flush_();
}

// Deletes an object none of whose owners is left.
void Collector::collect_dependent(const Location& at) {
  const ObjectPtr object = storage_.bucket(at.bucket).find(at.key);
  const ResourcePtr resource = resource_of(at.bucket);
  if (object == nullptr || resource == nullptr || object->owner_uids().empty()) return;
  const auto& owners = object->owner_uids();
  if (std::any_of(owners.begin(), owners.end(), [&](const std::string& uid) { return alive_.contains(uid); })) return;
  DeleteOptions options;
  options.uid = object->uid();
  options.propagation = "Background";
  (void)writer_.remove(resource, at.key, options);
}

void Collector::finish_deletion(const Location& at) {
  const ObjectPtr object = storage_.bucket(at.bucket).find(at.key);
  const ResourcePtr resource = resource_of(at.bucket);
  if (object == nullptr || resource == nullptr || !object->deleting()) return;
  json state = *object->parsed();
  const bool orphan = has_finalizer(state, "orphan");
  if (!orphan && !has_finalizer(state, "foregroundDeletion")) return;
  const std::set<Location> dependents = dependents_[object->uid()];
  for (const auto& location : dependents) {
    const ObjectPtr dependent = storage_.bucket(location.bucket).find(location.key);
    const ResourcePtr kind = resource_of(location.bucket);
    if (dependent == nullptr || kind == nullptr) continue;
    if (orphan) {
      json freed = *dependent->parsed();
      auto& owners = freed["metadata"]["ownerReferences"].get_ref<json::array_t&>();
      std::erase_if(owners, [&](const json& o) { return o.value("uid", "") == object->uid(); });
      if (owners.empty()) freed["metadata"].erase("ownerReferences");
      writer_.replace_object(kind, dependent, std::move(freed));
    } else if (!dependent->deleting()) {
      DeleteOptions options;
      options.uid = dependent->uid();
      options.propagation = "Foreground";
      (void)writer_.remove(kind, location.key, options);
    }
  }
  if (!orphan && !dependents_[object->uid()].empty()) return;  // The last dependent's end brings us back.
  drop_finalizer(state, orphan ? "orphan" : "foregroundDeletion");
  if (state["metadata"].contains("finalizers"))
    writer_.replace_object(resource, object, std::move(state));
  else
    writer_.erase_object(resource, object);
}

void Collector::tend_namespace(const std::string& name) {
  const ObjectPtr ns = storage_.bucket("namespaces").find({"", name});
  if (ns == nullptr) return;
  if (!ns->deleting()) {
    if (!options_.default_service_accounts || storage_.bucket("serviceaccounts").find({name, "default"}) != nullptr)
      return;
    writer_.seed_object(
        registry_.find("", "v1", "serviceaccounts"),
        {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "default"}, {"namespace", name}}}});
    return;
  }
  std::vector<std::pair<ResourcePtr, ObjectPtr>> content;
  for (const auto& [bucket_name, bucket] : storage_.buckets()) {
    const ResourcePtr resource = resource_of(bucket_name);
    if (resource == nullptr || !resource->namespaced) continue;
    const auto [first, last] = Bucket::range(bucket.objects(), name);
    for (auto it = first; it != last; ++it) content.emplace_back(resource, it->second);
  }
  for (const auto& [resource, object] : content) {
    DeleteOptions options;
    options.uid = object->uid();
    options.propagation = "Background";
    if (!object->deleting()) (void)writer_.remove(resource, object->key(), options);
  }
  const bool left = std::any_of(content.begin(), content.end(), [&](const auto& item) {
    return storage_.bucket(item.first->bucket).find(item.second->key()) != nullptr;
  });
  if (!left) writer_.finish_namespace(name);
}

}  // namespace gso::sim
