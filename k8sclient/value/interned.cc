#include "k8sclient/value/interned.h"

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>

namespace k8s {

struct Interned::Entry {
  explicit Entry(std::string_view t) : text(t) {}
  std::string text;
  mutable std::uint32_t users = 0;
};

namespace {

struct EntryHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  std::size_t operator()(const Interned::Entry& entry) const { return (*this)(std::string_view(entry.text)); }
};
struct EntryEqual {
  using is_transparent = void;
  static std::string_view text(std::string_view t) { return t; }
  static std::string_view text(const Interned::Entry& e) { return e.text; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return text(a) == text(b);
  }
};

struct Pool {
  std::unordered_set<Interned::Entry, EntryHash, EntryEqual> entries;  // Node-based: addresses are stable.
  std::size_t bytes = 0;
};

// Never destroyed: objects with static storage may hold interned strings until the very end.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

void release(const Interned::Entry* entry) {
  if (entry == nullptr || --entry->users > 0) return;
  Pool& p = pool();
  p.bytes -= entry->text.size();
  p.entries.erase(p.entries.find(std::string_view(entry->text)));
}

const Interned::Entry* acquire(const Interned::Entry* entry) {
  if (entry != nullptr) ++entry->users;
  return entry;
}

}  // namespace

Interned::Interned(std::string_view text) {
  if (text.empty()) return;
  Pool& p = pool();
  auto it = p.entries.find(text);
  if (it == p.entries.end()) {
    it = p.entries.emplace(text).first;
    p.bytes += text.size();
  }
  entry_ = acquire(&*it);
}

Interned::Interned(const Interned& other) noexcept : entry_(acquire(other.entry_)) {}
Interned::Interned(Interned&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
// Self-assignment is safe: the new reference is acquired before the old one is released.
// NOLINTNEXTLINE(bugprone-unhandled-self-assignment)
Interned& Interned::operator=(const Interned& other) noexcept {
  const Entry* old = entry_;
  entry_ = acquire(other.entry_);
  release(old);
  return *this;
}
Interned& Interned::operator=(Interned&& other) noexcept {
  if (this != &other) release(std::exchange(entry_, std::exchange(other.entry_, nullptr)));
  return *this;
}
Interned::~Interned() {
  release(entry_);
}

std::string_view Interned::view() const noexcept {
  return entry_ == nullptr ? std::string_view() : entry_->text;
}
std::size_t Interned::pool_bytes() {
  return pool().bytes;
}

}  // namespace k8s
