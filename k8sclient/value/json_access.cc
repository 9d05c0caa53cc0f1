#include "k8sclient/value/json_access.h"

#include <algorithm>

namespace k8s {

JsonScratch& JsonScratch::of_thread() {
  thread_local JsonScratch instance;
  return instance;
}

void JsonScratch::release_large() {
  if (longest_ <= kKept) return;
  parser_ = simdjson::ondemand::parser();
  std::string().swap(copy_);
  longest_ = 0;
}

void JsonScratch::make_room(std::size_t length) {
  if (length <= kKept) release_large();
  longest_ = std::max(longest_, length);
}

simdjson::error_code JsonScratch::open(std::string_view text, simdjson::ondemand::document& document) {
  make_room(text.size());
  const std::size_t readable = text.size() + simdjson::SIMDJSON_PADDING;
  return parser_.iterate(simdjson::padded_string_view(text.data(), text.size(), readable)).get(document);
}

simdjson::error_code JsonScratch::open_copy(std::string_view text, simdjson::ondemand::document& document) {
  make_room(text.size());
  copy_.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  copy_.assign(text);
  copy_.append(simdjson::SIMDJSON_PADDING, '\0');
  return open(std::string_view(copy_).substr(0, text.size()), document);
}

}  // namespace k8s
