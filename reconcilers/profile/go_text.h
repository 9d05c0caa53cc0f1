// Go's rules for text and numbers where the plugin's parser depends on them. (Durations: k8sclient/value/time.h.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

// encoding/json's comparison of a key with a field's name: case does not count. (Its long s and its Kelvin sign are
// left out.)
[[nodiscard]] bool equal_fold(std::string_view key, std::string_view field);

// github.com/google/uuid's Parse: the 36 characters, also with "urn:uuid:" before or braces around, or 32 hex digits.
[[nodiscard]] bool is_uuid(std::string_view text);

// strconv.ParseInt and ParseUint with 64 bits. `base` 0: by prefix (0x, 0b, 0o, 0), without underscores. nullopt on a
// syntax error and out of range.
[[nodiscard]] std::optional<std::int64_t> parse_go_int(std::string_view text, int base);
[[nodiscard]] std::optional<std::uint64_t> parse_go_uint(std::string_view text, int base);

// strconv.ParseFloat for 64 bits: decimal and hexadecimal, inf and nan in any case, without underscores. nullopt on a
// syntax error and on overflow; underflow gives 0.
[[nodiscard]] std::optional<double> parse_go_float(std::string_view text);

// A finite number as JSON: no exponent from 1e-6 up to 1e21, where encoding/json has none.
[[nodiscard]] std::string json_number(double value);

}  // namespace gso
