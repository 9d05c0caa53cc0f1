#include "k8sclient/api/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"

namespace k8s {

// --- A page of HTML. Not a parser: whatever the page is, some words of it.

namespace {

// A page that is longer says in its beginning what it is.
constexpr std::size_t kMostRead = 64U * 1024;

bool starts_with_tag(std::string_view text, std::string_view tag) {
  return text.size() >= tag.size() &&
         std::equal(tag.begin(), tag.end(), text.begin(), [](char a, char b) { return a == to_lower(b); });
}

// Where "<title" begins at or behind `from`; npos: nowhere. `tag` is in lower case.
std::size_t find_tag(std::string_view page, std::string_view tag, std::size_t from = 0) {
  for (std::size_t at = page.find('<', from); at != std::string_view::npos; at = page.find('<', at + 1))
    if (starts_with_tag(page.substr(at), tag)) return at;
  return std::string_view::npos;
}

// What is between two tags; empty: the page has no such element.
std::string_view element(std::string_view page, std::string_view open, std::string_view close) {
  const std::size_t tag = find_tag(page, open);
  const std::size_t begin = tag == std::string_view::npos ? tag : page.find('>', tag);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(find_tag(page, close, begin), page.size());
  return page.substr(begin + 1, end - begin - 1);
}

// Without tags, and without what is in elements that are no text.
std::string without_tags(std::string_view page) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kNoText{
      {{"<script", "</script"}, {"<style", "</style"}, {"<!--", "-->"}}};
  std::string out;
  for (std::size_t at = 0; at < page.size();) {
    if (page[at] != '<') {
      out += page[at++];
      continue;
    }
    for (const auto& [open, close] : kNoText) {
      if (!starts_with_tag(page.substr(at), open)) continue;
      at = close.front() == '<' ? find_tag(page, close, at) : page.find(close, at);
      at = std::min(at, page.size());
      break;
    }
    at = std::min(page.find('>', at), page.size() - 1) + 1;
    out += ' ';
  }
  return out;
}

// Between words one blank.
std::string in_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (space && (out.empty() || out.back() == ' ')) continue;
    out += space ? ' ' : c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

bool is_html(std::string_view body) {
  body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
  return std::ranges::any_of(std::initializer_list<std::string_view>{"<!doctype", "<html", "<head", "<body"},
                             [&](std::string_view tag) { return starts_with_tag(body, tag); });
}

// The title of the page, else its first heading, else its words without tags, scripts and styles. Empty: it has none.
std::string words_of_html(std::string_view page) {
  page = page.substr(0, kMostRead);
  constexpr std::array<std::array<std::string_view, 2>, 2> kNames{{{"<title", "</title"}, {"<h1", "</h1"}}};
  for (const auto& [open, close] : kNames) {
    std::string words = in_one_line(without_tags(element(page, open, close)));
    if (!words.empty()) return words;
  }
  return in_one_line(without_tags(page));
}

// --- metav1.Status in protobuf. The field numbers are those of generated.proto in k8s.io/apimachinery
// (pkg/apis/meta/v1).

namespace pb = protobuf;
using Json = nlohmann::json;
using protozero::pbf_reader;

// The texts of a message, under the names that JSON has for them. `other` reads further fields: true if it has.
template <class Other>
Json read_message(pbf_reader message, std::initializer_list<std::pair<std::uint32_t, const char*>> texts, Other other) {
  Json out = Json::object();
  pb::each_field(message, [&](std::uint32_t field, pbf_reader& value) {
    const auto* const text = std::ranges::find(texts, field, [](const auto& named) { return named.first; });
    if (text == texts.end()) return other(field, value, out);
    out[text->second] = replace_invalid_utf8(std::string(pb::view(value)));
    return true;
  });
  return out;
}

Json read_cause(pbf_reader cause) {
  return read_message(cause, {{pb::text(1), "reason"}, {pb::text(2), "message"}, {pb::text(3), "field"}},
                      [](std::uint32_t, pbf_reader&, Json&) { return false; });
}

Json read_details(pbf_reader details) {
  constexpr std::uint32_t kCauses = pb::text(4);
  constexpr std::uint32_t kRetryAfterSeconds = pb::number(5);
  Json causes = Json::array();
  Json out = read_message(details, {}, [&causes](std::uint32_t field, pbf_reader& value, Json& into) {
    if (field == kCauses && causes.size() < kMostCauses) {
      causes.push_back(read_cause(value.get_message()));
      return true;
    }
    if (field != kRetryAfterSeconds) return false;
    const std::int32_t seconds = value.get_int32();
    if (seconds > 0) into["retryAfterSeconds"] = static_cast<std::uint64_t>(seconds);
    return true;
  });
  out["causes"] = std::move(causes);
  return out;
}

Json read_status(std::string_view message) {
  constexpr std::uint32_t kDetails = pb::text(5);
  constexpr std::uint32_t kCode = pb::number(6);
  Json out =
      read_message(pbf_reader(message.data(), message.size()), {{pb::text(3), "message"}, {pb::text(4), "reason"}},
                   [](std::uint32_t field, pbf_reader& value, Json& into) {
                     if (field == kDetails) into["details"] = read_details(value.get_message());
                     if (field == kCode) into["code"] = value.get_int32();
                     return field == kDetails || field == kCode;
                   });
  out["kind"] = "Status";
  return out;
}

// As JSON, with the fields that error_from_answer() reads; null if `object` is no Status in protobuf.
Json read_protobuf_status(std::string_view object) {
  const auto opened = open_protobuf(object);
  if (!opened || opened->kind != "Status") return nullptr;
  Json status;
  if (!read_protobuf([&] { status = read_status(opened->message); })) return nullptr;
  return status;
}

// --- What an answer means.

// metav1.StatusReason. ServerTimeout means "busy, ask again" (code 500), Timeout that the request itself ran out (504).
constexpr std::array<std::pair<std::string_view, Reason>, 20> kStatusReasons{{
    {"NotFound", Reason::not_found},
    {"AlreadyExists", Reason::already_exists},
    {"Conflict", Reason::conflict},
    {"Gone", Reason::expired},
    {"Expired", Reason::expired},
    {"Invalid", Reason::invalid},
    {"BadRequest", Reason::invalid},
    {"MethodNotAllowed", Reason::invalid},
    {"NotAcceptable", Reason::invalid},
    {"UnsupportedMediaType", Reason::invalid},
    {"RequestEntityTooLarge", Reason::invalid},
    {"Forbidden", Reason::forbidden},
    {"Unauthorized", Reason::unauthorized},
    {"TooManyRequests", Reason::too_many_requests},
    {"Timeout", Reason::timeout},
    {"ServerTimeout", Reason::unavailable},
    {"InternalError", Reason::unavailable},
    {"ServiceUnavailable", Reason::unavailable},
    {"StorageReadError", Reason::unavailable},
    {"StoreReadError", Reason::unavailable},
}};

constexpr std::array<std::pair<int, Reason>, 8> kCodes{{{401, Reason::unauthorized},
                                                        {403, Reason::forbidden},
                                                        {404, Reason::not_found},
                                                        {408, Reason::timeout},
                                                        {409, Reason::conflict},
                                                        {410, Reason::expired},
                                                        {429, Reason::too_many_requests},
                                                        {504, Reason::timeout}}};

Reason reason_of_code(int http_status) {
  const auto* const code = std::ranges::find(kCodes, http_status, &std::pair<int, Reason>::first);
  if (code != kCodes.end()) return code->second;
  return http_status >= 500 ? Reason::unavailable : Reason::invalid;
}

std::optional<std::chrono::milliseconds> seconds_text(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // An HTTP date is also allowed there; API servers send seconds only. A day is more than any server means.
  if (ec != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > 86'400) return std::nullopt;
  return std::chrono::seconds(seconds);
}

// A body that is no Status, on one line and about 200 bytes. It can be anything, and the message must be UTF-8.
std::string excerpt(std::string_view body) {
  constexpr std::size_t kShown = 200;
  std::string out = in_one_line(body.substr(0, kMostRead));
  std::size_t end = std::min(kShown, out.size());
  const auto continues = [&out](std::size_t at) { return (static_cast<unsigned char>(out[at]) & 0xC0U) == 0x80U; };
  while (end < out.size() && end < kShown + 4 && continues(end)) ++end;  // A character is not cut.
  const bool cut = end < out.size();
  out.resize(end);
  return replace_invalid_utf8(std::move(out)) + (cut ? "…" : "");
}

// A server can send anything: the text of a field name or a type is short.
std::string short_text_at(const Json& object, const char* key) {
  constexpr std::size_t kMost = 256;
  const std::string text = text_at(object, key);
  return text.size() <= kMost ? text : excerpt(text);
}

std::vector<Cause> causes_in(const Json& details) {
  std::vector<Cause> out;
  const Json* const causes = member_at(details, "causes");
  if (causes == nullptr || !causes->is_array()) return out;
  for (const Json& cause : *causes) {
    if (out.size() == kMostCauses) break;
    if (cause.is_object())
      out.push_back({short_text_at(cause, "reason"), short_text_at(cause, "field"), text_at(cause, "message")});
  }
  return out;
}

// Those that the message does not contain already, as "field: message".
std::string causes_text(const std::vector<Cause>& causes, std::string_view message) {
  std::string out;
  for (const Cause& cause : causes) {
    if (cause.message.empty() || message.find(cause.message) != std::string_view::npos) continue;
    out +=
        fmt::format("{}{}{}{}", out.empty() ? "" : "; ", cause.field, cause.field.empty() ? "" : ": ", cause.message);
  }
  return out;
}

}  // namespace

Reason reason_of(int http_status, std::string_view status_reason) {
  const auto* const known =
      std::ranges::find(kStatusReasons, status_reason, &decltype(kStatusReasons)::value_type::first);
  return known == kStatusReasons.end() ? reason_of_code(http_status) : known->second;
}

std::string quoted_html(int http_status, std::string_view body) {
  if (!is_html(body)) return {};
  std::string words = words_of_html(body);
  const std::string number = fmt::format("{} ", http_status);  // "502 Bad Gateway"
  if (words.starts_with(number)) words.erase(0, number.size());
  return fmt::format("{}{}(an HTML page: of a proxy or load balancer, not of the API server)", excerpt(words),
                     words.empty() ? "" : " ");
}

Error error_from_answer(int http_status, std::string_view body, std::string_view retry_after_header,
                        std::string_view what) {
  Error error{.http_status = http_status, .retry_after = seconds_text(retry_after_header)};
  const Json status =
      is_protobuf(body) ? read_protobuf_status(body) : Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object() || text_at(status, "kind") != "Status") {
    error.reason = reason_of_code(http_status);
    const std::string page = quoted_html(http_status, body);
    const std::string quoted = page.empty() ? excerpt(body) : page;
    error.message = quoted.empty() ? fmt::format("{}: HTTP {}", what, http_status)
                                   : fmt::format("{}: HTTP {}: {}", what, http_status, quoted);
    return error;
  }
  if (http_status == 0) error.http_status = static_cast<int>(number_at(status, "code"));
  const std::string reason = text_at(status, "reason");
  error.reason = reason_of(error.http_status, reason);
  std::string message = text_at(status, "message");
  if (const Json* details = member_at(status, "details")) {
    error.causes = causes_in(*details);
    const std::string causes = causes_text(error.causes, message);
    if (!causes.empty()) message += fmt::format(" ({})", causes);
    const std::int64_t seconds = number_at(*details, "retryAfterSeconds");
    if (!error.retry_after && seconds > 0) error.retry_after = seconds_text(std::to_string(seconds));
  }
  if (message.empty()) message = reason.empty() ? "no message" : reason;
  error.message = fmt::format("{}: {} (HTTP {})", what, message, error.http_status);
  return error;
}

}  // namespace k8s
