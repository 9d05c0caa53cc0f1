// Interned: a shared, immutable string of pointer size. Label keys and values repeat across nodes; each text is
// stored once and freed with its last user. One-thread only, like everything that holds objects.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace k8s {

class Interned {
 public:
  Interned() = default;  // The empty string; allocates nothing.
  explicit Interned(std::string_view text);
  // Inline, because an assessment of a node moves and compares hundreds of them.
  Interned(const Interned& other) noexcept : entry_(acquire(other.entry_)) {}
  Interned(Interned&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  // Self-assignment is safe: the new reference is acquired before the old one is released.
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment)
  Interned& operator=(const Interned& other) noexcept {
    release(std::exchange(entry_, acquire(other.entry_)));
    return *this;
  }
  Interned& operator=(Interned&& other) noexcept {
    if (this != &other) release(std::exchange(entry_, std::exchange(other.entry_, nullptr)));
    return *this;
  }
  ~Interned() { release(entry_); }

  [[nodiscard]] std::string_view view() const noexcept {
    return entry_ == nullptr ? std::string_view() : std::string_view(entry_->text);
  }
  [[nodiscard]] bool empty() const noexcept { return entry_ == nullptr; }
  // Equal texts share one entry, so equality is a pointer comparison.
  friend bool operator==(const Interned& a, const Interned& b) noexcept { return a.entry_ == b.entry_; }
  friend bool operator==(const Interned& a, std::string_view b) noexcept { return a.view() == b; }
  friend std::strong_ordering operator<=>(const Interned& a, const Interned& b) noexcept {
    return a.view() <=> b.view();
  }
  // Equal texts have the same number as long as one of them is in memory.
  [[nodiscard]] std::size_t hash() const noexcept { return std::hash<const void*>{}(entry_); }

  // Bytes held by the pool, without hash-table overhead.
  [[nodiscard]] static std::size_t pool_bytes();

  // One text of the pool.
  struct Entry {
    explicit Entry(std::string_view t) : text(t) {}
    std::string text;
    mutable std::uint32_t users = 0;
  };

 private:
  static const Entry* acquire(const Entry* entry) noexcept {
    if (entry != nullptr) ++entry->users;
    return entry;
  }
  static void release(const Entry* entry) noexcept {
    if (entry != nullptr && --entry->users == 0) forget(*entry);
  }
  static void forget(const Entry& entry) noexcept;  // Its last user has gone.

  const Entry* entry_ = nullptr;
};

}  // namespace k8s

template <>
struct std::hash<k8s::Interned> {
  std::size_t operator()(const k8s::Interned& text) const noexcept { return text.hash(); }
};
