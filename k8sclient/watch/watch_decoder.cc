#include "k8sclient/watch/watch_decoder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"

namespace k8s {
namespace {

namespace ondemand = simdjson::ondemand;
namespace pb = protobuf;
using Json = nlohmann::json;
using protozero::pbf_reader;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

// In the order of WatchEventType.
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

// What a line or a frame says. The texts may point into it, or into the parser's string buffer.
struct Said {
  std::string_view type;
  std::string_view object;
  std::string_view resource_version;
  bool initial_events_end = false;
};

// --- A frame in protobuf. For read_protobuf().

void read_meta(pbf_reader meta, Said& out) {
  constexpr std::uint32_t kResourceVersion = pb::text(6);
  constexpr std::uint32_t kAnnotations = pb::text(12);
  while (meta.next()) {
    switch (meta.tag_and_type()) {
      case kResourceVersion:
        out.resource_version = pb::view(meta);
        if (out.type != "BOOKMARK") return;
        break;
      case kAnnotations: {
        const pb::MapEntry annotation = pb::read_map_entry(meta.get_message());
        if (annotation.key == kInitialEventsEnd) out.initial_events_end = annotation.value == "true";
        break;
      }
      default:
        meta.skip();
    }
  }
}

Said read_frame(std::string_view frame) {
  constexpr std::uint32_t kType = pb::text(1);
  constexpr std::uint32_t kObject = pb::text(2);
  constexpr std::uint32_t kRaw = pb::text(1);  // Of the RawExtension.
  Said out;
  pb::each_field({frame.data(), frame.size()}, [&](std::uint32_t field, pbf_reader& value) {
    if (field == kType) out.type = pb::view(value);
    if (field == kObject) out.object = pb::only_text(value.get_message(), kRaw);
    return field == kType || field == kObject;
  });
  const std::optional<ProtobufObject> object = open_protobuf(out.object);
  if (!object) out.object = {};
  if (object && out.type != "ERROR") read_meta(pb::meta_of(object->message), out);
  return out;
}

// --- A line of JSON. For read_json().

void read_metadata(ondemand::object metadata, bool bookmark, Said& out) {
  for (auto field : metadata) {
    const std::string_view key = field.unescaped_key();
    if (key == "resourceVersion") out.resource_version = field.value();
    if (!bookmark || key != "annotations") continue;
    ondemand::object annotations = field.value().get_object();
    for (auto annotation : annotations) {
      const std::string_view name = annotation.unescaped_key();
      if (name == kInitialEventsEnd) out.initial_events_end = annotation.value().get_string().value() == "true";
    }
  }
}

void read_object(ondemand::object object, Said& out) {
  out.object = object.raw_json();
  object.reset().value();
  if (out.type == "ERROR") return;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    // The annotation counts on bookmarks only; on a line that names the object before the type it is read always.
    if (key == "metadata") read_metadata(field.value().get_object(), out.type.empty() || out.type == "BOOKMARK", out);
  }
}

Said read_line(ondemand::document& document) {
  Said out;
  ondemand::object root = document.get_object();
  for (auto field : root) {
    const std::string_view key = field.unescaped_key();
    if (key == "type") out.type = field.value();
    if (key == "object") read_object(field.value().get_object(), out);
  }
  must_end(document);
  return out;
}

// What the beginning of a line says: the type, and the short texts of the object's metadata. It breaks off somewhere.
struct Head {
  std::string type;
  Json metadata = Json::object();
};

Head read_head(std::string_view beginning) {
  constexpr std::array<std::string_view, 4> kShort{"name", "namespace", "uid", "resourceVersion"};
  Head out;
  std::array<std::string, 3> path;  // The fields that the next text stands in; empty in an array.
  const auto look = [&](int depth, Json::parse_event_t event, const Json& read) {
    const auto level = static_cast<std::size_t>(depth);
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && level < path.size()) path[level].clear();
    if (event == Json::parse_event_t::key && level <= path.size()) path[level - 1] = read.get<std::string>();
    if (event != Json::parse_event_t::value || !read.is_string()) return true;
    if (level == 1 && path[0] == "type") out.type = read.get<std::string>();
    const bool of_metadata = level == 3 && path[0] == "object" && path[1] == "metadata";
    if (of_metadata && std::ranges::find(kShort, path[2]) != kShort.end()) out.metadata[path[2]] = read;
    return true;
  };
  const Json broken_off = Json::parse(beginning, look, /*allow_exceptions=*/false);
  return out;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return fmt::format("\"{}{}\"", replace_invalid_utf8(std::string(text.substr(0, kShown))),
                     text.size() > kShown ? "…" : "");
}

// `line` is a frame where the encoding has them, and followed by kJsonPadding readable bytes. The event, whose object
// points into it, or what is wrong.
std::expected<WatchEvent, std::string> decode(std::string_view line, WatchEncoding encoding) {
  const bool json = encoding == WatchEncoding::json;
  const auto wrong = [&](std::string what) {
    if (json) what += ": " + quoted(line);
    return std::unexpected(std::move(what));
  };
  Said said;
  if (json) {
    ondemand::document document;  // Nothing that it lends out leaves this function.
    auto error = JsonScratch::of_thread().open(line, document);
    if (error == simdjson::SUCCESS) error = read_json([&] { said = read_line(document); });
    if (error != simdjson::SUCCESS)
      return wrong(fmt::format("a line is not a watch event ({})", simdjson::error_message(error)));
  } else if (!read_protobuf([&] { said = read_frame(line); })) {
    return wrong("a frame is not a watch event in protobuf");
  }
  const std::optional<WatchEventType> type = watch_event_type(said.type);
  if (!type) return wrong(fmt::format("a watch event has the unknown type {}", quoted(said.type)));
  if (said.object.empty())
    return wrong(json ? "a watch event has no object" : "a watch event's object is not in Kubernetes' protobuf");
  if (*type != WatchEventType::error && said.resource_version.empty())
    return wrong("a watch event has no metadata.resourceVersion");
  return WatchEvent{*type, said.object, std::string(said.resource_version),
                    said.initial_events_end && *type == WatchEventType::bookmark};
}

}  // namespace

std::string_view to_string(WatchEventType type) {
  return kTypes.at(static_cast<std::size_t>(type)).first;
}

std::optional<WatchEventType> watch_event_type(std::string_view text) {
  const auto* const known = std::ranges::find(kTypes, text, [](const auto& type) { return type.first; });
  return known == kTypes.end() ? std::nullopt : std::optional(known->second);
}

void WatchDecoder::feed(std::string_view chunk) {
  if (broken_) return;
  chunk = skip(chunk);
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  // Grown later, a large line would be in memory twice for a moment. What is reserved and not written costs none; a
  // chunk is no longer than the longest line (CurlTransportOptions::max_unread_stream_bytes).
  const std::size_t needed = buffer_.size() + chunk.size() + kJsonPadding;
  if (needed > buffer_.capacity())
    buffer_.reserve(needed > kLargeBuffer ? std::max(needed, 2 * max_line_ + kJsonPadding) : needed);
  buffer_.append(chunk);
}

std::optional<Result<WatchEvent>> WatchDecoder::next() {
  JsonScratch::of_thread().release_large();  // Of a large event before, which has been read.
  std::optional<std::string_view> line;
  if (!broken_ && !skipped_) line = encoding_ == WatchEncoding::json ? next_line() : next_frame();
  if (skipped_ && skipped_->ended) {
    lent_ = std::move(skipped_->object);
    WatchEvent event = std::move(skipped_->event);
    skipped_.reset();
    event.object = std::string_view(lent_).substr(0, lent_.size() - kJsonPadding);
    return Result<WatchEvent>(std::move(event));
  }
  if (broken_) return Result<WatchEvent>(std::unexpected(*broken_));
  if (!line) return std::nullopt;
  auto event = decode(*line, encoding_);
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
  // No more of it than there is for certain, however the stream was cut.
  Head head = read_head(std::string_view(buffer_).substr(begin_, std::min(kLookedAt, max_line_)));
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
