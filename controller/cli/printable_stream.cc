// See printable_stream.h.
#include "controller/cli/printable_stream.h"

#include "controller/commands/shared/screen.h"
#include "reconcilers/model/message_text.h"

namespace gso {

PrintableStream::PrintableStream(std::ostream& behind, std::size_t columns)
    : std::ostream(nullptr), buffer_(behind, columns) {
  rdbuf(&buffer_);
}

PrintableStream::~PrintableStream() {
  buffer_.finish();
}

void PrintableStream::Buffer::finish() {
  if (line_.empty()) return;
  const std::string text = printable(line_);
  const bool breaks = columns_ > 0 && text.ends_with('\n');
  behind_ << (breaks ? wrapped_prose(text, columns_) : text) << std::flush;
  line_.clear();
}

// A character of several bytes must not be cut: lines are written as a whole.
PrintableStream::Buffer::int_type PrintableStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  line_ += traits_type::to_char_type(c);
  if (line_.back() == '\n') finish();
  return c;
}

int PrintableStream::Buffer::sync() {
  finish();
  return behind_ ? 0 : -1;
}

}  // namespace gso
