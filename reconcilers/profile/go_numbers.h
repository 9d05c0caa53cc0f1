// Go's strconv rules for numbers, and its JSON form of a float.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

// Go's strconv.ParseInt and ParseUint with 64 bits. `base` 0: by prefix (0x, 0b, 0o, 0), where underscores may separate
// digits. nullopt on a syntax error and out of range.
[[nodiscard]] std::optional<std::int64_t> parse_go_int(std::string_view text, int base);
[[nodiscard]] std::optional<std::uint64_t> parse_go_uint(std::string_view text, int base);

// Go's strconv.ParseFloat for 64 bits: decimal and hexadecimal, inf and nan in any case. nullopt on a syntax error and
// on overflow; underflow gives 0.
[[nodiscard]] std::optional<double> parse_go_float(std::string_view text);

// A finite number as Go's encoding/json writes it: shortest digits, no exponent from 1e-6 up to 1e21.
[[nodiscard]] std::string json_number(double value);

}  // namespace gso
