#include "k8sclient/watch/watch_decoder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"

namespace k8s {
namespace {

// --- One frame of a watch in protobuf -> watch event. Pure; watch_decoder.h cuts the stream into frames.

namespace pb = protobuf;
using protozero::pbf_reader;

struct Frame {
  std::string_view type;
  std::string_view object;
};

Frame read_frame(std::string_view bytes) {
  constexpr std::uint32_t kType = pb::text(1);
  constexpr std::uint32_t kObject = pb::text(2);
  constexpr std::uint32_t kRaw = pb::text(1);  // Of the RawExtension.
  Frame out;
  pb::each_field({bytes.data(), bytes.size()}, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kType) out.type = pb::view(value);
    if (field == kObject) out.object = pb::only_text(value.get_message(), kRaw);
    return field == kType || field == kObject;
  });
  return out;
}

void read_meta(pbf_reader meta, WatchEvent& event) {
  constexpr std::uint32_t kResourceVersion = pb::text(6);
  constexpr std::uint32_t kAnnotations = pb::text(12);
  while (meta.next()) {
    switch (meta.tag_and_type()) {
      case kResourceVersion:
        event.resource_version = pb::view(meta);
        if (event.type != WatchEventType::bookmark) return;
        break;
      case kAnnotations: {
        const pb::MapEntry annotation = pb::read_map_entry(meta.get_message());
        if (annotation.key == kInitialEventsEnd) event.initial_events_end = annotation.value == "true";
        break;
      }
      default:
        meta.skip();
    }
  }
}

constexpr std::string_view kNotReadable = "a frame is not a watch event in protobuf";

// The event, or what is wrong with the frame. WatchEvent::object points into `frame`.
std::expected<WatchEvent, std::string> read_protobuf_event(std::string_view frame) {
  Frame read;
  if (!read_protobuf([&] { read = read_frame(frame); })) return std::unexpected(std::string(kNotReadable));
  const std::optional<WatchEventType> type = watch_event_type(read.type);
  if (!type) {
    const std::string shown = replace_invalid_utf8(std::string(read.type.substr(0, 60)));
    return std::unexpected(fmt::format("a watch event has the unknown type \"{}\"", shown));
  }
  const std::optional<ProtobufObject> object = open_protobuf(read.object);
  if (!object) return std::unexpected(std::string("a watch event's object is not in Kubernetes' protobuf"));
  WatchEvent event;
  event.type = *type;
  event.object = read.object;
  if (*type == WatchEventType::error) return event;
  if (!read_protobuf([&] { read_meta(pb::meta_of(object->message), event); })) {
    return std::unexpected(std::string(kNotReadable));
  }
  if (event.resource_version.empty()) {
    return std::unexpected(std::string("a watch event has no metadata.resourceVersion"));
  }
  return event;
}

namespace ondemand = simdjson::ondemand;
using Json = nlohmann::json;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

constexpr std::array<std::pair<std::string_view, WatchEventType>, 5> kTypes{{
    {"ADDED", WatchEventType::added},
    {"MODIFIED", WatchEventType::modified},
    {"DELETED", WatchEventType::deleted},
    {"BOOKMARK", WatchEventType::bookmark},
    {"ERROR", WatchEventType::error},
}};

// Capacity that a buffer may keep between lines.
constexpr std::size_t kKeptBuffer = 256U * 1024;
constexpr std::size_t kLargeBuffer = 1024U * 1024;

// What one line holds; `type` and `resource_version` may point into the parser's string buffer.
struct Line {
  std::string_view type;
  std::string_view object_json;
  std::string_view resource_version;
  bool initial_events_end = false;
};

simdjson::error_code read_annotations(ondemand::value value, Line* line) {
  ondemand::object annotations;
  if (auto error = value.get_object().get(annotations)) return error;
  for (auto field : annotations) {
    std::string_view key;
    std::string_view text;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (key != kInitialEventsEnd) continue;
    if (auto error = field.value().get_string().get(text)) return error;
    line->initial_events_end = text == "true";
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_metadata(ondemand::value value, bool bookmark, Line* line) {
  ondemand::object metadata;
  if (auto error = value.get_object().get(metadata)) return error;
  for (auto field : metadata) {
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (key == "resourceVersion") {
      if (auto error = field.value().get_string().get(line->resource_version)) return error;
    } else if (bookmark && key == "annotations") {
      ondemand::value annotations;
      if (auto error = field.value().get(annotations)) return error;
      if (auto error = read_annotations(annotations, line)) return error;
    }
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_object(ondemand::value value, Line* line) {
  ondemand::object object;
  if (auto error = value.get_object().get(object)) return error;
  if (auto error = object.raw_json().get(line->object_json)) return error;
  if (auto error = object.reset().error()) return error;
  if (line->type == "ERROR") return simdjson::SUCCESS;
  for (auto field : object) {
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (key != "metadata") continue;
    ondemand::value metadata;
    if (auto error = field.value().get(metadata)) return error;
    // The annotation counts on bookmarks only; on a line that names the object before the type it is read always.
    if (auto error = read_metadata(metadata, line->type.empty() || line->type == "BOOKMARK", line)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_line(ondemand::document& document, Line* line) {
  ondemand::object root;
  if (auto error = document.get_object().get(root)) return error;
  for (auto field : root) {
    std::string_view key;
    ondemand::value value;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (auto error = field.value().get(value)) return error;
    if (key == "type") {
      if (auto error = value.get_string().get(line->type)) return error;
    } else if (key == "object") {
      if (auto error = read_object(value, line)) return error;
    }
  }
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return at_end ? simdjson::SUCCESS : simdjson::TRAILING_CONTENT;
}

// What the beginning of a line says: the type, and the short texts of the object's metadata. It breaks off somewhere.
class Head final : public nlohmann::json_sax<Json> {
 public:
  std::string type;
  Json metadata = Json::object();

  bool string(std::string& text) override {
    if (path_ == std::vector<std::string>{"type"}) type = text;
    const bool of_metadata = path_.size() == 3 && path_[0] == "object" && path_[1] == "metadata";
    if (of_metadata && std::ranges::find(kShort, path_[2]) != kShort.end()) metadata[path_[2]] = text;
    return true;
  }
  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool start_object(std::size_t /*size*/) override { return enter(); }
  bool start_array(std::size_t /*size*/) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*why*/) override {
    return false;
  }

 private:
  static constexpr std::array<std::string_view, 4> kShort{"name", "namespace", "uid", "resourceVersion"};
  bool enter() {
    path_.emplace_back();
    return true;
  }
  bool leave() {
    path_.pop_back();
    return true;
  }
  std::vector<std::string> path_;  // Of the value that comes next; an empty text in an array.
};

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return fmt::format("\"{}{}\"", replace_invalid_utf8(std::string(text.substr(0, kShown))),
                     text.size() > kShown ? "…" : "");
}

// `line` is followed by kJsonPadding readable bytes. The message of a failure, or the event.
std::expected<WatchEvent, std::string> decode(std::string_view line) {
  ondemand::document document;  // Nothing that it lends out leaves this function.
  Line read;
  auto error = JsonScratch::of_thread().open(
      simdjson::padded_string_view(line.data(), line.size(), line.size() + kJsonPadding), document);
  if (error == simdjson::SUCCESS) error = read_line(document, &read);
  if (error != simdjson::SUCCESS) {
    return std::unexpected(
        fmt::format("a line is not a watch event ({}): {}", simdjson::error_message(error), quoted(line)));
  }
  const std::optional<WatchEventType> type = watch_event_type(read.type);
  if (!type) {
    return std::unexpected(fmt::format("a watch event has the unknown type {}: {}", quoted(read.type), quoted(line)));
  }
  if (read.object_json.empty()) return std::unexpected("a watch event has no object: " + quoted(line));
  if (*type != WatchEventType::error && read.resource_version.empty()) {
    return std::unexpected("a watch event has no metadata.resourceVersion: " + quoted(line));
  }
  return WatchEvent{*type, read.object_json, std::string(read.resource_version),
                    read.initial_events_end && *type == WatchEventType::bookmark};
}

}  // namespace

std::string_view to_string(WatchEventType type) {
  for (const auto& [name, value] : kTypes) {
    if (value == type) return name;
  }
  return "";
}

std::optional<WatchEventType> watch_event_type(std::string_view text) {
  for (const auto& [name, type] : kTypes) {
    if (name == text) return type;
  }
  return std::nullopt;
}

void WatchDecoder::feed(std::string_view chunk) {
  if (broken_) return;
  chunk = skip(chunk);
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  // Grown by doubling, a large line would be in memory twice for a moment. What is reserved and not written costs none.
  const std::size_t needed = buffer_.size() + chunk.size() + kJsonPadding;
  const std::size_t most = max_line_ + chunk.size() + kJsonPadding;
  if (needed > buffer_.capacity()) buffer_.reserve(needed > kLargeBuffer ? std::max(needed, most) : needed);
  buffer_.append(chunk);
}

std::optional<Result<WatchEvent>> WatchDecoder::next() {
  JsonScratch::of_thread().release_large();  // Of a large event before, which has been read.
  const bool json = encoding_ == WatchEncoding::json;
  const std::optional<std::string_view> line = broken_ || skipped_ ? std::nullopt : json ? next_line() : next_frame();
  if (skipped_ && skipped_->ended) {
    lent_ = std::move(skipped_->object);
    WatchEvent event = std::move(skipped_->event);
    skipped_.reset();
    event.object = std::string_view(lent_).substr(0, lent_.size() - kJsonPadding);
    return Result<WatchEvent>(std::move(event));
  }
  if (broken_) return Result<WatchEvent>(std::unexpected(*broken_));
  if (!line) return std::nullopt;
  auto event = json ? decode(*line) : read_protobuf_event(*line);
  if (event) return Result<WatchEvent>(*std::move(event));
  fail_for_good(std::move(event.error()));
  return Result<WatchEvent>(std::unexpected(*broken_));
}

std::optional<std::string_view> WatchDecoder::next_line() {
  while (true) {
    const std::size_t newline = buffer_.find('\n', scanned_);
    const bool complete = newline != std::string::npos;
    const std::size_t end = complete ? newline : buffer_.size();
    if (end - begin_ > max_line_) {
      skip_line();
      return std::nullopt;
    }
    if (!complete) {
      scanned_ = end;
      release();
      return std::nullopt;
    }
    const std::string_view line(buffer_.data() + begin_, end - begin_);
    begin_ = scanned_ = end + 1;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) return line;
  }
}

// More than is accepted of the line is in the buffer. Go writes the names first.
void WatchDecoder::skip_line() {
  constexpr std::size_t kLookedAt = std::size_t{64} * 1024;
  Head head;
  // No more of it than there is for certain, however the stream was cut.
  Json::sax_parse(buffer_.substr(begin_, std::min(kLookedAt, max_line_)), &head, Json::input_format_t::json,
                  /*strict=*/false);
  const std::optional<WatchEventType> type = watch_event_type(head.type);
  const std::string version = text_at(head.metadata, "resourceVersion");
  if (!type || *type == WatchEventType::error || version.empty() || text_at(head.metadata, "name").empty()) {
    return fail_for_good(fmt::format(
        "a watch event is longer than {} bytes, the most that is accepted, and its beginning does not name its object",
        max_line_));
  }
  const std::string held = std::exchange(buffer_, {});
  const std::string_view rest = std::string_view(held).substr(std::exchange(begin_, 0));
  scanned_ = 0;
  std::string object = dump(Json{{"metadata", std::move(head.metadata)}}) + std::string(kJsonPadding, '\0');
  skipped_ = Skipped{{*type, {}, version, false, 0}, std::move(object)};
  buffer_ = skip(rest);
}

std::string_view WatchDecoder::skip(std::string_view chunk) {
  if (!skipped_ || skipped_->ended) return chunk;
  const std::size_t newline = chunk.find('\n');
  skipped_->ended = newline != std::string_view::npos;
  const std::size_t over = skipped_->ended ? newline : chunk.size();
  skipped_->event.skipped_bytes += over;
  return chunk.substr(skipped_->ended ? over + 1 : over);
}

std::optional<std::string_view> WatchDecoder::next_frame() {
  constexpr std::size_t kLength = 4;
  const std::string_view unread = std::string_view(buffer_).substr(begin_);
  std::size_t size = 0;
  if (unread.size() >= kLength) {
    for (const char byte : unread.substr(0, kLength)) size = size << 8U | static_cast<unsigned char>(byte);
    if (size > max_line_) {
      fail_for_good(fmt::format("a watch event is longer than {} bytes, the most that is accepted", max_line_));
      return std::nullopt;
    }
  }
  if (unread.size() < kLength + size) {
    scanned_ = buffer_.size();
    release();
    return std::nullopt;
  }
  begin_ = scanned_ = begin_ + kLength + size;
  return unread.substr(kLength, size);
}

// Returns the memory of a large line when nothing is left.
void WatchDecoder::release() {
  if (begin_ != buffer_.size() || buffer_.capacity() <= kKeptBuffer) return;
  std::string().swap(buffer_);
  begin_ = scanned_ = 0;
}

void WatchDecoder::fail_for_good(std::string message) {
  broken_ = Error{Reason::decode, 0, std::move(message)};
  std::string().swap(buffer_);
  begin_ = scanned_ = 0;
}

}  // namespace k8s
