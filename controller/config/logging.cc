// Formats records and hands finished lines to spdlog.
#include "controller/config/logging.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

std::string_view level_name(LogLevel level) {
  constexpr std::array<std::string_view, 6> kNames{"trace", "debug", "info", "warn", "error", "off"};
  return kNames[static_cast<std::size_t>(level)];
}

bool secret(std::string_view key) {
  const std::string lower = k8s::lower(key);
  constexpr std::array<std::string_view, 5> kSecrets{"token", "password", "secret", "authorization", "privatekey"};
  return std::any_of(kSecrets.begin(), kSecrets.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

constexpr std::size_t kMostLoggedBytes = 16384;  // Of one value: whatever a server or a file has put there.

// A JSON string literal. Bytes that are not UTF-8 come out as U+FFFD, so that a line always parses; characters that a
// terminal obeys or does not show are escaped.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = k8s::utf8_sequence(text);
    const Unprintable hidden = length == 0 ? Unprintable{1, 0xfffd} : unprintable_at(text);
    if (hidden.bytes > 0) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(hidden.character));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\u0009";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(hidden.bytes > 0 ? hidden.bytes : length);
  }
  return out + '"';
}

std::string value_text(const LogField& field, bool always_quote) {
  if (secret(field.key())) return "\"(hidden)\"";
  struct Visitor {
    bool always_quote;
    std::string operator()(std::string_view whole) const {
      const std::string_view text = first_bytes(whole, kMostLoggedBytes);
      const bool plain = !text.empty() && std::none_of(text.begin(), text.end(), [](unsigned char c) {
        return c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f;
      });
      return plain && !always_quote ? std::string(text) : quoted(text);
    }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{:.6g}", number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  };
  return std::visit(Visitor{always_quote}, field.value());
}

std::string timestamp(k8s::WallTime time) {
  std::string text = k8s::format_micro_time(time);  // 2026-01-02T03:04:05.678000Z
  return text.size() > 4 ? text.substr(0, text.size() - 4) + "Z" : text;
}

}  // namespace

std::string format_record(LogFormat format, LogLevel level, k8s::WallTime time, std::string_view message,
                          LogFields fields) {
  if (format == LogFormat::text) {
    std::string name(level_name(level));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    std::string line =
        fmt::format("{} {:<5} {}", timestamp(time), name, one_line(first_bytes(message, kMostLoggedBytes)));
    for (const LogField& field : fields) line += fmt::format(" {}={}", field.key(), value_text(field, false));
    return line;
  }
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","msg":{})", timestamp(time), level_name(level),
                                 quoted(first_bytes(message, kMostLoggedBytes)));
  for (const LogField& field : fields) line += fmt::format(",{}:{}", quoted(field.key()), value_text(field, true));
  line += '}';
  return line;
}

Logger::Logger(LogFormat format, LogLevel level, std::function<k8s::WallTime()> now)
    : format_(format), level_(level), now_(std::move(now)) {
  sink_ = std::make_shared<spdlog::logger>("gso", std::make_shared<spdlog::sinks::stderr_sink_st>());
  sink_->set_pattern("%v");
  sink_->set_level(spdlog::level::trace);
  write_ = [this](const std::string& line) { sink_->log(spdlog::level::info, line); };
}

Logger::Logger(LogFormat format, LogLevel level, std::function<k8s::WallTime()> now,
               std::function<void(const std::string&)> write)
    : format_(format), level_(level), now_(std::move(now)), write_(std::move(write)) {}

Logger::~Logger() = default;

std::shared_ptr<Logger> Logger::silent() {
  return std::make_shared<Logger>(
      LogFormat::text, LogLevel::off, [] { return k8s::WallTime{}; }, [](const std::string&) {});
}

void Logger::log(LogLevel level, std::string_view message, LogFields fields) {
  if (!enabled(level)) return;
  write_(format_record(format_, level, now_(), message, fields));
}

void Logger::flush() {
  if (sink_ != nullptr) sink_->flush();
}

}  // namespace gso
