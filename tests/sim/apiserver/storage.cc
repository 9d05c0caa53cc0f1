// Objects, their revisions and the window of past events.
#include "tests/sim/apiserver/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tests/sim/recent_json.h"

namespace gso::sim {

using nlohmann::json;

namespace {

std::string text_at(const json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

Object::Object(json object, std::vector<std::pair<std::string, std::string>> fields) : fields_(std::move(fields)) {
  type_ = fmt::format("{{\"kind\":{},\"apiVersion\":{}", object.value("kind", json("")).dump(),
                      object.value("apiVersion", json("")).dump());
  json kind = std::move(object["kind"]);
  json api_version = std::move(object["apiVersion"]);
  object.erase("kind");
  object.erase("apiVersion");
  body_ = object.dump(-1, ' ', false, json::error_handler_t::replace);
  object["kind"] = std::move(kind);
  object["apiVersion"] = std::move(api_version);
  const json& metadata = object["metadata"];
  key_ = {text_at(metadata, "namespace"), text_at(metadata, "name")};
  uid_ = text_at(metadata, "uid");
  const std::string revision = text_at(metadata, "resourceVersion");
  std::from_chars(revision.data(), revision.data() + revision.size(), revision_);
  if (auto labels = metadata.find("labels"); labels != metadata.end())
    for (const auto& [name, value] : labels->items()) labels_[name] = value.get<std::string>();
  if (auto owners = metadata.find("ownerReferences"); owners != metadata.end())
    for (const auto& owner : *owners) owner_uids_.push_back(text_at(owner, "uid"));
  deleting_ = metadata.contains("deletionTimestamp");
  auto parsed = std::make_shared<const json>(std::move(object));
  parsed_ = parsed;
  keep_parsed(text(), std::move(parsed));
}

std::string Object::text() const {
  return type_ + "," + body_.substr(1);
}

std::shared_ptr<const json> Object::parsed() const {
  if (auto held = parsed_.lock()) return held;
  auto fresh = parsed_lately(text());
  parsed_ = fresh;
  return fresh;
}

std::optional<std::string_view> Object::label(std::string_view label_key) const {
  auto it = labels_.find(label_key);
  if (it == labels_.end()) return std::nullopt;
  return it->second;
}

std::optional<std::string_view> Object::field(std::string_view path) const {
  if (path == "metadata.name") return key_.name;
  if (path == "metadata.namespace") return key_.ns;
  for (const auto& [name, value] : fields_)
    if (name == path) return value;
  return std::nullopt;
}

std::string storage_key(const k8s::ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

ObjectPtr Bucket::find(const k8s::ObjectKey& key) const {
  auto it = objects_.find(storage_key(key));
  return it == objects_.end() ? nullptr : it->second;
}

std::optional<Bucket::Objects> Bucket::at(std::uint64_t revision) const {
  if (revision < forgotten_) return std::nullopt;
  Objects objects = objects_;
  for (auto event = events_.rbegin(); event != events_.rend() && event->revision > revision; ++event) {
    const ObjectPtr& any = event->after != nullptr ? event->after : event->before;
    const std::string key = storage_key(any->key());
    if (event->before == nullptr)
      objects.erase(key);
    else
      objects[key] = event->before;
  }
  return objects;
}

std::pair<Bucket::Objects::const_iterator, Bucket::Objects::const_iterator> Bucket::range(const Objects& objects,
                                                                                          const std::string& ns) {
  if (ns.empty()) return {objects.begin(), objects.end()};
  return {objects.lower_bound(ns + "/"), objects.lower_bound(ns + "0")};  // '0' follows '/'.
}

void Storage::put(const std::string& name, ObjectPtr object) {
  Bucket& in = buckets_[name];
  ObjectPtr& slot = in.objects_[storage_key(object->key())];
  StoredEvent event{object->revision(), clock_.monotonic(), slot, object, nullptr};
  slot = std::move(object);
  record(name, in, std::move(event));
}

void Storage::remove(const std::string& name, ObjectPtr last) {
  Bucket& in = buckets_[name];
  auto it = in.objects_.find(storage_key(last->key()));
  if (it == in.objects_.end()) return;
  StoredEvent event{last->revision(), clock_.monotonic(), it->second, nullptr, last};
  in.objects_.erase(it);
  record(name, in, std::move(event));
}

void Storage::record(const std::string& name, Bucket& bucket, StoredEvent event) {
  bucket.events_.push_back(std::move(event));
  const k8s::MonoTime oldest = clock_.monotonic() - limits_.history;
  while (bucket.events_.size() > limits_.events_per_resource || bucket.events_.front().time < oldest) {
    bucket.forgotten_ = bucket.events_.front().revision;
    bucket.events_.pop_front();
  }
  const StoredEvent recorded = bucket.events_.back();  // A listener may write and so move the deque.
  for (const auto& listener : listeners_) listener(name, recorded);
}

void Storage::compact(const std::string& bucket) {
  for (auto& [name, in] : buckets_) {
    if (!bucket.empty() && name != bucket) continue;
    in.forgotten_ = revision_;
    in.events_.clear();
  }
}

void Storage::forget_last(k8s::MonoTime since) {
  std::uint64_t oldest_lost = revision_ + 1;
  for (auto& [name, in] : buckets_) {
    while (!in.events_.empty() && in.events_.back().time > since) {
      const StoredEvent& lost = in.events_.back();
      const std::string key = storage_key((lost.after != nullptr ? lost.after : lost.before)->key());
      if (lost.before == nullptr)
        in.objects_.erase(key);
      else
        in.objects_[key] = lost.before;
      oldest_lost = std::min(oldest_lost, lost.revision);
      in.events_.pop_back();
    }
  }
  revision_ = oldest_lost - 1;
}

}  // namespace gso::sim
