// Tar: headers of 512 bytes. Layout: POSIX.1-2017, pax, "ustar Interchange Format". Gzip: by zlib. Secrets by their
// names and forms.
#include "controller/commands/shared/archive.h"

#define ZLIB_CONST  // The input is not written to.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "controller/commands/shared/print.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameSize = 100;
constexpr std::size_t kSumAt = 148;

}  // namespace

void TarArchive::add(std::string name, std::string_view content) {
  name.resize(std::min(name.size(), kNameSize));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(modified_.time_since_epoch()).count();
  const std::pair<std::string, std::size_t> fields[] = {
      {name, kNameSize},
      {"0000600", 8},  // The mode, and root's user and group.
      {"0000000", 8},
      {"0000000", 8},
      {fmt::format("{:011o}", content.size()), 12},
      {fmt::format("{:011o}", std::max<std::int64_t>(0, seconds)), 12},
      {std::string(8, ' '), 8},  // The sum of all bytes: blanks count in its place.
      {"0", 101},                // A file, which links to nothing.
      {"ustar", 6},
      {"00", 249}};
  std::string header;
  for (const auto& [text, size] : fields) header.append(text).append(size - text.size(), '\0');
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0U,
                                       [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  header.replace(kSumAt, 7, fmt::format("{:06o}", sum) + '\0');
  bytes_ += header;
  bytes_ += content;
  bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

std::string TarArchive::finish() && {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

k8s::Result<std::string> gzipped(std::string_view bytes) {
  constexpr int kGzipFormat = 16;  // Added to the window's bits: a header of gzip, where zlib's own is the default.
  constexpr int kUsualMemory = 8;
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2)
    return k8s::fail(k8s::Reason::decode, "the archive cannot be compressed: it has more than 2 GiB");
  z_stream stream{};
  int code = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kUsualMemory,
                          Z_DEFAULT_STRATEGY);
  std::string out(code == Z_OK ? deflateBound(&stream, bytes.size()) : 0, '\0');
  if (code == Z_OK) {
    stream.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    code = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
  }
  (void)deflateEnd(&stream);
  if (code == Z_STREAM_END) return out;
  return k8s::fail(k8s::Reason::decode, fmt::format("the archive cannot be compressed: zlib answers {}", code));
}

// --- Secrets, by name and by what they look like.

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool is_token_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-_.+/=~").contains(c);
}

// Replaces what follows each `word` (whatever the case) up to the first character that no token has.
void cut_after(std::string& text, std::string_view word) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (std::size_t from = 0; from < text.size();) {
    const auto at =
        std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), word.begin(), word.end(), same);
    if (at == text.end()) return;
    const auto start = at + static_cast<std::ptrdiff_t>(word.size());
    const auto end = std::find_if_not(start, text.end(), is_token_char);
    from = static_cast<std::size_t>(start - text.begin());
    if (end == start) continue;
    text.replace(start, end, kRedacted);
    from += kRedacted.size();
  }
}

// "eyJ…": the beginning of every JSON Web Token.
void cut_web_tokens(std::string& text) {
  constexpr std::ptrdiff_t kShortest = 20;
  for (std::size_t at = text.find("eyJ"); at != std::string::npos; at = text.find("eyJ", at + 1)) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = std::find_if_not(begin, text.end(), is_token_char);
    if (end - begin >= kShortest) text.replace(begin, end, kRedacted);
  }
}

void cut_pem(std::string& text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kEnd = "-----END ";
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at + 1)) {
    std::size_t end = text.find(kEnd, at);
    if (end != std::string::npos) end = text.find("-----", end + kEnd.size());
    const std::size_t to = end == std::string::npos ? text.size() : end + 5;
    text.replace(at, to - at, kRedacted);
  }
}

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-_.").contains(c);
}

std::size_t skip(std::string_view text, std::size_t at, std::string_view characters) {
  return std::min(text.find_first_not_of(characters, at), text.size());
}

// Where a value begins behind its name, which ends at `at`: NAME=VALUE, NAME: VALUE, "NAME":VALUE, and behind a flag
// --NAME VALUE. npos: no value follows.
std::size_t value_after(std::string_view text, std::size_t at, bool is_flag) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t name_end = at;
  at = skip(text, skip(text, at, "\\\"'"), kBlanks);
  if (at >= text.size() || text[at] == '\n') return std::string_view::npos;
  if (text[at] == '=' || text[at] == ':') return skip(text, at + 1, kBlanks);
  return is_flag && at > name_end ? at : std::string_view::npos;
}

struct RedactedSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The value that begins there, without its quotes: JSON inside of JSON has a backslash before each. A value that no
// quote closes ends with its line.
RedactedSpan value_at(std::string_view text, std::size_t at) {
  const std::size_t quote = skip(text, at, "\\");
  const bool quoted = quote < text.size() && (text[quote] == '"' || text[quote] == '\'');
  if (!quoted) return {at, std::min(text.find_first_of(" \t\r\n\"", at), text.size())};
  const std::string_view mark = text.substr(at, quote + 1 - at);
  const std::size_t line_end = std::min(text.find('\n', quote), text.size());
  std::size_t end = text.find(mark, quote + 1);
  while (mark.size() == 1 && end < line_end && text[end - 1] == '\\') end = text.find(mark, end + 1);
  return {quote + 1, std::min(end, line_end)};
}

// The values of what is named like a secret.
void cut_named(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t name = at;
    while (at < text.size() && is_name_char(text[at])) ++at;
    if (at == name) {
      ++at;
      continue;
    }
    if (!is_secret_name(std::string_view(text).substr(name, at - name))) continue;
    const std::size_t begin = value_after(text, at, text[name] == '-');
    // The members of an object have names of their own.
    if (begin >= text.size() || text[begin] == '{') continue;
    const RedactedSpan value = value_at(text, begin);
    if (value.begin >= value.end) continue;
    text.replace(value.begin, value.end - value.begin, kRedacted);
    at = value.begin + kRedacted.size();
  }
}

// "https://user:password@host" -> "https://(redacted)@host"
void cut_user_info(std::string& text) {
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const std::size_t start = at + 3;
    const std::size_t end = text.find_first_of("/ \t\n\"'", start);
    const std::size_t sign = text.find('@', start);
    if (sign == std::string::npos || (end != std::string::npos && sign > end)) continue;
    text.replace(start, sign - start, kRedacted);
  }
}

bool is_environment(const OrderedJson& value) {
  return value.is_object() && value.contains("name") && value["name"].is_string() && value.contains("value");
}

// ["--token", "VALUE"]
void redact_arguments(OrderedJson& list) {
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (!list[i].is_string() || !list[i + 1].is_string()) continue;
    const std::string& flag = list[i].get_ref<const std::string&>();
    const bool has_value = flag.find_first_of("= ") != std::string::npos;
    if (flag.starts_with('-') && !has_value && is_secret_name(flag)) list[i + 1] = kRedacted;
  }
}

void redact_value(OrderedJson& value) {
  if (value.is_string()) {
    value = redacted(value.get_ref<const std::string&>());
    return;
  }
  if (value.is_array()) {
    redact_arguments(value);
    for (OrderedJson& item : value) redact_value(item);
    return;
  }
  if (!value.is_object()) return;
  if (is_environment(value) && is_secret_name(value["name"].get_ref<const std::string&>())) value["value"] = kRedacted;
  for (auto& [key, member] : value.items())
    if (is_secret_name(key) && (member.is_string() || member.is_number()))
      member = kRedacted;
    else
      redact_value(member);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kWords{"token",      "password",   "passwd",      "secret_",
                                                           "_secret",    "credential", "api_key",     "apikey",
                                                           "access_key", "privatekey", "private_key", "dockerconfig"};
  std::string lower = in_lower_case(name);
  std::ranges::replace(lower, '-', '_');
  // `auth` of a registry's entry, REGISTRY_AUTH; not AUTH_MODE, nor an author.
  if (lower == "secret" || lower == "auth" || lower.ends_with("_auth")) return true;
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

std::string redacted(std::string_view text) {
  std::string out(text);
  cut_pem(out);
  cut_user_info(out);
  cut_after(out, "bearer ");
  cut_after(out, "basic ");
  cut_named(out);
  cut_web_tokens(out);
  return out;
}

void redact(OrderedJson& object) {
  if (object.is_object()) {
    const auto meta = object.find("metadata");
    if (meta != object.end() && meta->is_object()) {
      meta->erase("managedFields");
      const auto annotations = meta->find("annotations");
      if (annotations != meta->end() && annotations->is_object()) annotations->erase(std::string(kLastApplied));
    }
    if (text_at(object, "kind") == "Secret") {
      object["data"] = kRedacted;
      object["stringData"] = kRedacted;
    }
  }
  redact_value(object);
}

}  // namespace gso
