#include "k8sclient/value/interned.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <vector>

namespace k8s {

namespace {

// Hashes and compares the entries of the pool, and texts that are looked for, by their text.
struct ByText {
  using is_transparent = void;
  static std::string_view of(std::string_view text) { return text; }
  static std::string_view of(const Interned::Entry& entry) { return entry.text; }
  std::size_t operator()(const auto& one) const { return std::hash<std::string_view>{}(of(one)); }
  bool operator()(const auto& a, const auto& b) const { return of(a) == of(b); }
};

// The texts that were asked for last. Nodes of a fleet have nearly the same labels, so most of a Node's texts are
// here, and are found by a few of their bytes instead of a hash of all of them.
class Recent {
 public:
  [[nodiscard]] const Interned::Entry* find(std::string_view text) const {
    const Interned::Entry* const entry = slots_[slot_of(text)];
    return entry != nullptr && entry->text == text ? entry : nullptr;
  }
  void note(const Interned::Entry& entry) { slots_[slot_of(entry.text)] = &entry; }
  void forget(const Interned::Entry& entry) {
    const Interned::Entry*& slot = slots_[slot_of(entry.text)];
    if (slot == &entry) slot = nullptr;
  }

 private:
  static constexpr int kBits = 11;

  // By its length, and its first and last bytes: keys with one prefix differ in their last ones.
  static std::size_t slot_of(std::string_view text) {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const std::size_t most = std::min(text.size(), sizeof first);
    std::memcpy(&first, text.data(), most);
    std::memcpy(&last, text.data() + text.size() - most, most);
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
    const std::uint64_t mixed = ((first ^ text.size()) * kOdd) ^ (last + (last >> 32U));
    return static_cast<std::size_t>((mixed * kOdd) >> (64 - kBits));
  }

  std::array<const Interned::Entry*, std::size_t{1} << kBits> slots_{};
};

struct Pool {
  std::unordered_set<Interned::Entry, ByText, ByText> entries;  // Node-based: addresses are stable.
  std::vector<const Interned::Entry*> table{nullptr};           // By number; 0 is the empty text.
  std::vector<std::uint32_t> unused;                            // Numbers whose texts have gone.
  Recent recent;
  std::size_t bytes = 0;

  const Interned::Entry& add(std::string_view text) {
    auto number = static_cast<std::uint32_t>(table.size());
    if (unused.empty()) {
      table.push_back(nullptr);
    } else {
      number = unused.back();
      unused.pop_back();
    }
    const Interned::Entry& entry = *entries.emplace(text, number).first;
    table[number] = &entry;
    bytes += text.size();
    return entry;
  }
  void remove(const Interned::Entry& entry) {
    bytes -= entry.text.size();
    recent.forget(entry);
    table[entry.number] = nullptr;
    unused.push_back(entry.number);
    entries.erase(entries.find(std::string_view(entry.text)));
  }
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
  const Entry* entry = p.recent.find(text);
  if (entry == nullptr) {
    const auto it = p.entries.find(text);
    entry = it == p.entries.end() ? &p.add(text) : &*it;
    entries_ = p.table.data();
    p.recent.note(*entry);
  }
  number_ = acquire(entry->number);
}

void Interned::forget(const Entry& entry) noexcept {
  pool().remove(entry);
}

std::size_t Interned::pool_bytes() {
  return pool().bytes;
}

// --- The text of a UUID <-> 16 bytes.

namespace {

constexpr std::size_t kTextSize = 36;
constexpr std::string_view kDigits = "0123456789abcdef";

bool is_dash(std::size_t at) {
  return at == 8 || at == 13 || at == 18 || at == 23;
}

// nullopt unless writing the bytes gives the same text again.
std::optional<std::array<std::uint8_t, 16>> parse_uuid(std::string_view text) {
  if (text.size() != kTextSize) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{};
  std::size_t digits = 0;
  for (std::size_t at = 0; at < kTextSize; ++at) {
    if (is_dash(at)) {
      if (text[at] != '-') return std::nullopt;
      continue;
    }
    const auto digit = kDigits.find(text[at]);
    if (digit == std::string_view::npos) return std::nullopt;
    bytes[digits / 2] = static_cast<std::uint8_t>(bytes[digits / 2] << 4U | digit);
    ++digits;
  }
  return bytes;
}

}  // namespace

Uid::Uid(std::string_view text) {
  const auto bytes = parse_uuid(text);
  if (bytes && *bytes != decltype(bytes_){})
    bytes_ = *bytes;
  else
    other_ = Interned(text);
}

std::string Uid::str() const {
  if (bytes_ == decltype(bytes_){}) return std::string(other_.view());
  std::string out;
  out.reserve(kTextSize);
  for (const std::uint8_t byte : bytes_) {
    if (is_dash(out.size())) out += '-';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

}  // namespace k8s
