#include "k8sclient/value/interned.h"

#include <unordered_set>

namespace k8s {

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

void Interned::forget(const Entry& entry) noexcept {
  Pool& p = pool();
  p.bytes -= entry.text.size();
  p.entries.erase(p.entries.find(std::string_view(entry.text)));
}

std::size_t Interned::pool_bytes() {
  return pool().bytes;
}

}  // namespace k8s
