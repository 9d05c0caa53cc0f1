// Interned: a shared, immutable string of four bytes. Label keys and values repeat across nodes; each text is stored
// once and freed with its last user. A node has some seventy labels: with pointers, they alone were a third of what the
// operator keeps of it. One-thread only, like everything that holds objects.
#pragma once

#include <array>
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
  Interned(const Interned& other) noexcept : number_(acquire(other.number_)) {}
  Interned(Interned&& other) noexcept : number_(std::exchange(other.number_, kEmpty)) {}
  // Self-assignment is safe: the new reference is acquired before the old one is released.
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment)
  Interned& operator=(const Interned& other) noexcept {
    release(std::exchange(number_, acquire(other.number_)));
    return *this;
  }
  Interned& operator=(Interned&& other) noexcept {
    if (this != &other) release(std::exchange(number_, std::exchange(other.number_, kEmpty)));
    return *this;
  }
  ~Interned() { release(number_); }

  [[nodiscard]] std::string_view view() const noexcept {
    return number_ == kEmpty ? std::string_view() : std::string_view(entries_[number_]->text);
  }
  [[nodiscard]] bool empty() const noexcept { return number_ == kEmpty; }
  // Equal texts share one entry, so equality is a comparison of numbers.
  friend bool operator==(const Interned& a, const Interned& b) noexcept { return a.number_ == b.number_; }
  friend bool operator==(const Interned& a, std::string_view b) noexcept { return a.view() == b; }
  friend std::strong_ordering operator<=>(const Interned& a, const Interned& b) noexcept {
    return a.number_ == b.number_ ? std::strong_ordering::equal : a.view() <=> b.view();
  }
  // Equal texts have the same number as long as one of them is in memory.
  [[nodiscard]] std::size_t hash() const noexcept { return number_; }

  // Bytes held by the pool, without hash-table overhead.
  [[nodiscard]] static std::size_t pool_bytes();

  // One text of the pool.
  struct Entry {
    Entry(std::string_view t, std::uint32_t n) : text(t), number(n) {}
    std::string text;
    std::uint32_t number;  // Its place in the pool's table.
    mutable std::uint32_t users = 0;
  };

 private:
  static constexpr std::uint32_t kEmpty = 0;

  static std::uint32_t acquire(std::uint32_t number) noexcept {
    if (number != kEmpty) ++entries_[number]->users;
    return number;
  }
  static void release(std::uint32_t number) noexcept {
    if (number != kEmpty && --entries_[number]->users == 0) forget(*entries_[number]);
  }
  static void forget(const Entry& entry) noexcept;  // Its last user has gone.

  // The pool's table, by number: it moves when it grows.
  static inline const Entry* const* entries_ = nullptr;

  std::uint32_t number_ = kEmpty;
};

// --- Uid: an object's uid in 24 bytes and without an allocation where it is a UUID, as API servers generate them; four
// of every five objects that are held are known only to be compared and deleted by it. Any other text is kept as it is.

class Uid {
 public:
  Uid() = default;  // No uid.
  // Converts freely: a uid is text everywhere but in stores.
  Uid(std::string_view text);
  Uid(const std::string& text) : Uid(std::string_view(text)) {}
  Uid(const char* text) : Uid(std::string_view(text)) {}

  // Just what it was made of.
  [[nodiscard]] std::string str() const;
  operator std::string() const { return str(); }
  [[nodiscard]] bool empty() const { return *this == Uid(); }
  friend std::strong_ordering operator<=>(const Uid&, const Uid&) = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};  // Of a UUID in lower case; all zero: see other_.
  Interned other_;
};

}  // namespace k8s

template <>
struct std::hash<k8s::Interned> {
  std::size_t operator()(const k8s::Interned& text) const noexcept { return text.hash(); }
};
