#include "k8sclient/value/object.h"

#include <fmt/format.h>

#include <algorithm>

#include "k8sclient/value/encoding.h"

namespace k8s {

std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

bool older(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); };
  if (!number(a) || !number(b)) return false;
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

namespace {

// Fewer are not worth their own memory.
constexpr std::ptrdiff_t kFewestShared = 8;

auto position(auto& entries, std::string_view key) {
  return std::lower_bound(entries.begin(), entries.end(), key,
                          [](const StringMap::Entry& entry, std::string_view k) { return entry.key.view() < k; });
}

// The entries that maps share: each list once, as long as one of them has it.
class SharedEntries {
 public:
  using List = std::shared_ptr<const StringMap::Entries>;

  List find_or_add(StringMap::Entries entries) {
    const std::size_t hash = hash_of(entries);
    const auto [first, last] = lists_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      List known = it->second.lock();
      if (known != nullptr && *known == entries) return known;
    }
    List added(new StringMap::Entries(std::move(entries)), [this, hash](const StringMap::Entries* gone) {
      delete gone;
      forget_expired(hash);
    });
    lists_.emplace(hash, added);
    return added;
  }

 private:
  static std::size_t hash_of(const StringMap::Entries& entries) {
    std::size_t out = entries.size();
    for (const StringMap::Entry& entry : entries) out = (out * 31 + entry.key.hash()) * 31 + entry.value.hash();
    return out;
  }

  void forget_expired(std::size_t hash) {
    const auto [first, last] = lists_.equal_range(hash);
    for (auto it = first; it != last;) it = it->second.expired() ? lists_.erase(it) : std::next(it);
  }

  std::unordered_multimap<std::size_t, std::weak_ptr<const StringMap::Entries>> lists_;
};

SharedEntries& shared_entries() {
  static auto* const out = new SharedEntries;  // Never destroyed: maps may live longer than statics.
  return *out;
}

}  // namespace

StringMap::StringMap(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}

bool StringMap::shares(std::string_view key) const {
  return shared_ != nullptr && shared_->front().key.view() <= key && key <= shared_->back().key.view();
}

std::ptrdiff_t StringMap::place_of_shared() const {
  return position(own_, shared_->front().key.view()) - own_.begin();
}

StringMap::Iterator StringMap::begin() const {
  if (shared_ == nullptr) return {own_.data(), nullptr, nullptr};
  return {own_.data(), own_.data() + place_of_shared(), shared_.get()};
}

void StringMap::set(std::string_view key, std::string_view value) {
  if (shares(key)) unshare();
  // The API server writes a map's keys in order.
  const bool is_last = own_.empty() || own_.back().key.view() < key;
  auto it = is_last ? own_.end() : position(own_, key);
  if (it != own_.end() && it->key == key)
    it->value = Interned(value);
  else
    own_.insert(it, Entry{Interned(key), Interned(value)});
}

void StringMap::erase(std::string_view key) {
  if (shares(key)) unshare();
  auto it = position(own_, key);
  if (it != own_.end() && it->key == key) own_.erase(it);
}

std::optional<std::string_view> StringMap::get(std::string_view key) const {
  const Entries& entries = shares(key) ? *shared_ : own_;
  auto it = position(entries, key);
  if (it == entries.end() || it->key != key) return std::nullopt;
  return it->value.view();
}

void StringMap::share(std::string_view prefix) {
  if (shared_ != nullptr) unshare();
  const auto first = position(own_, prefix);
  const auto last =
      std::find_if_not(first, own_.end(), [&](const Entry& entry) { return entry.key.view().starts_with(prefix); });
  if (last - first < kFewestShared) return;
  shared_ = shared_entries().find_or_add(Entries(first, last));
  // A new vector of the right size: the old one was as large as all entries.
  Entries own;
  own.reserve(own_.size() - shared_->size());
  own.insert(own.end(), own_.begin(), first);
  own.insert(own.end(), last, own_.end());
  own_ = std::move(own);
}

void StringMap::unshare() {
  own_.insert(own_.begin() + place_of_shared(), shared_->begin(), shared_->end());
  shared_.reset();
}

bool operator==(const StringMap& a, const StringMap& b) {
  if (a.shared_ == b.shared_) return a.own_ == b.own_;
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

const OwnerReference* ObjectMeta::controller() const {
  const auto it = std::ranges::find_if(owners, &OwnerReference::controller);
  return it == owners.end() ? nullptr : &*it;
}

std::string percent_encode(std::string_view text, std::string_view marks) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (is_alphanumeric(c) || marks.contains(c))
      out += c;
    else
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
  return out;
}

std::string group_version_path(const Gvr& gvr) {
  return gvr.group.empty() ? "/api/" + gvr.version : fmt::format("/apis/{}/{}", gvr.group, gvr.version);
}

std::string collection_path(const Gvr& gvr, std::string_view ns) {
  std::string path = group_version_path(gvr);
  if (!ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + gvr.resource;
}

std::string object_path(const Gvr& gvr, const ObjectKey& key, std::string_view subresource) {
  std::string path = collection_path(gvr, key.ns) + "/" + percent_encode(key.name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

std::string query_text(std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  std::string out;
  for (const auto& [key, value] : parameters) {
    if (value.empty()) continue;
    out += fmt::format("{}{}={}", out.empty() ? '?' : '&', percent_encode(key), percent_encode(value));
  }
  return out;
}

}  // namespace k8s
