// JSON that is printed: a terminal may be what shows it.
#pragma once

#include <string>
#include <string_view>

namespace gso {

// The JSON text with the characters of unprintable.h as "\u202e" where its strings have them. It is read back as the
// same values. Such an escape is one of YAML's double quotes too.
[[nodiscard]] std::string printable_json(std::string_view json);

}  // namespace gso
