// Structured logs over spdlog: one line per record to stderr, JSON or text, key/value fields. No request bodies, no
// headers, no credentials are ever passed in; values of fields that are named like a secret are hidden anyway.
//
//   log->info("Patched node", {{"node", name}, {"resourceVersion", rv}});
//
// Style (Kubernetes logging conventions): capitalised, past tense, no period; objects as "ns/name".
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "controller/config/options.h"
#include "k8sclient/value/time.h"

namespace spdlog {
class logger;
}

namespace gso {

class LogField {
 public:
  using Value = std::variant<std::string_view, std::int64_t, double, bool>;
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value) : key_(key), value_(std::string_view(value)) {}
  LogField(std::string_view key, bool value) : key_(key), value_(value) {}
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  LogField(std::string_view key, N value) : key_(key), value_(static_cast<std::int64_t>(value)) {}
  LogField(std::string_view key, double value) : key_(key), value_(value) {}

  [[nodiscard]] std::string_view key() const { return key_; }
  [[nodiscard]] const Value& value() const { return value_; }

 private:
  std::string_view key_;  // Both live for the call only.
  Value value_;
};

using LogFields = std::initializer_list<LogField>;

class Logger {
 public:
  // `now` stamps the records (the simulated cluster's time in simulations).
  Logger(LogFormat format, LogLevel level, std::function<k8s::WallTime()> now);
  // The same into `write`, one line per call without the line feed.
  Logger(LogFormat format, LogLevel level, std::function<k8s::WallTime()> now,
         std::function<void(const std::string& line)> write);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Drops everything.
  [[nodiscard]] static std::shared_ptr<Logger> silent();

  // From now on.
  void set_level(LogLevel level) { level_ = level; }
  [[nodiscard]] LogLevel level() const { return level_; }
  [[nodiscard]] bool enabled(LogLevel level) const { return level >= level_ && level_ != LogLevel::off; }
  void log(LogLevel level, std::string_view message, LogFields fields);
  void debug(std::string_view message, LogFields fields = {}) { log(LogLevel::debug, message, fields); }
  void info(std::string_view message, LogFields fields = {}) { log(LogLevel::info, message, fields); }
  void warning(std::string_view message, LogFields fields = {}) { log(LogLevel::warning, message, fields); }
  void error(std::string_view message, LogFields fields = {}) { log(LogLevel::error, message, fields); }
  void flush();

 private:
  LogFormat format_;
  LogLevel level_;
  std::function<k8s::WallTime()> now_;
  std::function<void(const std::string&)> write_;
  std::shared_ptr<spdlog::logger> sink_;
};

// One record in either form, without line feed. Text: `2026-01-02T03:04:05.000Z INFO  Message key=value`.
[[nodiscard]] std::string format_record(LogFormat format, LogLevel level, k8s::WallTime time, std::string_view message,
                                        LogFields fields);

}  // namespace gso
