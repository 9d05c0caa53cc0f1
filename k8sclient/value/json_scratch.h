// JsonScratch: the memory of a thread for reading one JSON object after the other on demand. A parser needs about six
// times the size of its text, so every decoder of single objects shares this one: watch events, object keys and
// projections. After a text beyond kKept the memory is returned with the next smaller one.
//
//   simdjson::ondemand::document document;
//   auto error = JsonScratch::of_thread().open(padded, document);
//
// The document and what it lends out are valid until the next open(), by whomever: read it to the end, copy what stays,
// and call no other decoder meanwhile. (Pages of a list have a parser of their own, since their items are decoded while
// the page is read.)
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace k8s {

class JsonScratch {
 public:
  static constexpr std::size_t kKept = std::size_t{256} << 10;  // Most text for which memory is kept.

  static JsonScratch& of_thread();

  simdjson::error_code open(simdjson::padded_string_view text, simdjson::ondemand::document& document);
  // The same for a text that nothing readable may follow: it is copied first.
  simdjson::error_code open_copy(std::string_view text, simdjson::ondemand::document& document);

  // Returns the memory of a text beyond kKept now. Ends what open() lent out, if it was such a text.
  void release_large();

  // The longest text that could be read without more memory.
  [[nodiscard]] std::size_t held() const { return parser_.capacity(); }

 private:
  void make_room(std::size_t length);

  simdjson::ondemand::parser parser_;
  std::string copy_;
  std::size_t longest_ = 0;  // Text since the memory was returned last.
};

}  // namespace k8s
