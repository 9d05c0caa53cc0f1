// Quantities in nano units of a 128-bit integer, which holds every value the API accepts.
#include "tests/sim/apiserver/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace gso::sim {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kNanosPerUnit = 1'000'000'000;
constexpr Wide kMost = (Wide{1} << 63) * kNanosPerUnit;

struct Suffix {
  std::string_view name;
  Wide nanos;
};
constexpr std::array<Suffix, 10> kDecimal{{{"n", 1},
                                           {"u", 1'000},
                                           {"m", 1'000'000},
                                           {"", kNanosPerUnit},
                                           {"k", kNanosPerUnit * 1'000},
                                           {"M", kNanosPerUnit * 1'000'000},
                                           {"G", kNanosPerUnit * 1'000'000'000},
                                           {"T", kNanosPerUnit * 1'000'000'000'000},
                                           {"P", kNanosPerUnit * 1'000'000'000'000'000},
                                           {"E", kNanosPerUnit * 1'000'000'000'000'000'000}}};
constexpr std::array<Suffix, 6> kBinary{{{"Ki", kNanosPerUnit << 10},
                                         {"Mi", kNanosPerUnit << 20},
                                         {"Gi", kNanosPerUnit << 30},
                                         {"Ti", kNanosPerUnit << 40},
                                         {"Pi", kNanosPerUnit << 50},
                                         {"Ei", kNanosPerUnit << 60}}};

struct Number {
  Wide digits = 0;  // The number times 10^scale.
  int scale = 0;
};

std::optional<Number> take_number(std::string_view& text) {
  Number number;
  std::size_t i = 0;
  bool dot = false;
  bool any = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !dot) {
      dot = true;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') break;
    any = true;
    if (number.digits > kMost) return std::nullopt;
    number.digits = number.digits * 10 + (text[i] - '0');
    number.scale += dot ? 1 : 0;
  }
  if (!any) return std::nullopt;
  text.remove_prefix(i);
  return number;
}

// The unit's size in nanos, and whether it is binary. Decimal exponents ("12e6") count as decimal.
std::optional<std::pair<Wide, bool>> rollout_key_of(std::string_view suffix) {
  for (const Suffix& s : kDecimal)
    if (s.name == suffix) return std::pair{s.nanos, false};
  for (const Suffix& s : kBinary)
    if (s.name == suffix) return std::pair{s.nanos, true};
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  int exponent = 0;
  const char* begin = suffix.data() + (suffix[1] == '+' ? 2 : 1);
  const char* end = suffix.data() + suffix.size();
  const auto [stop, error] = std::from_chars(begin, end, exponent);
  if (error != std::errc() || stop != end || exponent > 18 || exponent < -9) return std::nullopt;
  Wide unit = kNanosPerUnit;
  for (; exponent > 0; --exponent) unit *= 10;
  for (; exponent < 0; ++exponent) unit /= 10;
  return std::pair{unit, false};
}

std::string print(Wide value, std::string_view suffix, bool negative) {
  return fmt::format("{}{}{}", negative ? "-" : "", static_cast<long long>(value), suffix);
}

}  // namespace

std::optional<std::string> canonical_quantity(std::string_view text) {
  // What is canonical but for leading zeros is kept as it was written.
  if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') {
    const std::string_view rest = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
    auto canonical = canonical_quantity(rest);
    return canonical == std::string(rest) ? std::string(text) : canonical;
  }
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  auto number = take_number(text);
  if (!number) return std::nullopt;
  const auto unit = rollout_key_of(text);
  if (!unit) return std::nullopt;
  auto [nanos_per, binary] = *unit;
  Wide nanos = number->digits;
  while (number->scale > 0 && nanos_per % 10 == 0) {
    nanos_per /= 10;
    --number->scale;
  }
  if (nanos != 0 && nanos_per > kMost / nanos) return print((Wide{1} << 63) - 1, "", negative);
  nanos *= nanos_per;
  for (; number->scale > 0; --number->scale) nanos = (nanos + 9) / 10;
  if (nanos == 0) return "0";
  if (binary && nanos >= 1024 * kNanosPerUnit && nanos % kNanosPerUnit == 0) {
    std::string_view name;
    Wide size = kNanosPerUnit;
    for (const Suffix& s : kBinary) {
      if (nanos % s.nanos != 0) break;
      name = s.name;
      size = s.nanos;
    }
    return print(nanos / size, name, negative);
  }
  for (std::size_t i = kDecimal.size(); i-- > 0;)
    if (nanos % kDecimal[i].nanos == 0) return print(nanos / kDecimal[i].nanos, kDecimal[i].name, negative);
  return std::nullopt;
}

}  // namespace gso::sim
