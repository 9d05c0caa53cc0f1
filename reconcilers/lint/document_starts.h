// Where the documents of a YAML text begin, by its lines: a text with an error is read on from there.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gso {

// The offset of the first line, after `skip` others and not at the beginning of the text, that begins a document.
[[nodiscard]] std::size_t next_document(std::string_view text, int skip);

// If the line is a directive (%YAML, %TAG): where the document that it belongs to begins. The rest of that document can
// be read without it.
[[nodiscard]] std::optional<std::size_t> document_of_directive(std::string_view text, int directive);

}  // namespace gso
