// Interned: a shared, immutable string of pointer size. Label keys and values repeat across nodes; each text is
// stored once and freed with its last user. One-thread only, like everything that holds objects.
#pragma once

#include <compare>
#include <cstddef>
#include <string_view>

namespace k8s {

class Interned {
 public:
  Interned() = default;  // The empty string; allocates nothing.
  explicit Interned(std::string_view text);
  Interned(const Interned& other) noexcept;
  Interned(Interned&& other) noexcept;
  Interned& operator=(const Interned& other) noexcept;
  Interned& operator=(Interned&& other) noexcept;
  ~Interned();

  [[nodiscard]] std::string_view view() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return entry_ == nullptr; }
  // Equal texts share one entry, so equality is a pointer comparison.
  friend bool operator==(const Interned& a, const Interned& b) noexcept { return a.entry_ == b.entry_; }
  friend bool operator==(const Interned& a, std::string_view b) noexcept { return a.view() == b; }
  friend std::strong_ordering operator<=>(const Interned& a, const Interned& b) noexcept {
    return a.view() <=> b.view();
  }

  // Bytes held by the pool, without hash-table overhead.
  [[nodiscard]] static std::size_t pool_bytes();

  struct Entry;

 private:
  const Entry* entry_ = nullptr;
};

}  // namespace k8s
