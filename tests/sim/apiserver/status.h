// metav1.Status: how the API says no, in the words of the real server.
#pragma once

#include <expected>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/transport/transport.h"

namespace gso::sim {

// One cause of an Invalid answer, made of what field.Error has: where, what kind of error, the value, the detail.
struct FieldError {
  enum class Type {
    invalid,
    required,
    duplicate,
    forbidden,
    not_supported,
    too_long,
    too_many,
    not_found,
    type_invalid
  };
  Type type = Type::invalid;
  std::string field;
  std::string value;  // As printed: "\"X_\"" for strings, JSON for the rest; left out when empty.
  std::string detail;

  // "Invalid value: \"X_\": must be …"
  [[nodiscard]] std::string body() const;
  // "FieldValueInvalid"
  [[nodiscard]] std::string_view reason() const;
};
using FieldErrors = std::vector<FieldError>;

[[nodiscard]] FieldError invalid_value(std::string field, const nlohmann::json& value, std::string detail);
[[nodiscard]] FieldError required_value(std::string field, std::string detail = "");
[[nodiscard]] FieldError forbidden_value(std::string field, std::string detail);
[[nodiscard]] FieldError duplicate_value(std::string field, const nlohmann::json& value);
[[nodiscard]] FieldError too_long(std::string field, std::size_t limit);
// "Unsupported value: \"x\": supported values: \"A\", \"B\""
[[nodiscard]] FieldError not_supported(std::string field, const nlohmann::json& value,
                                       const std::vector<std::string>& supported);

// A failed request: code, reason, message and details of the Status to answer with.
class ApiError {
 public:
  ApiError(int code, std::string reason, std::string message);
  ApiError(int code, std::string reason, std::string message, nlohmann::json details);

  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] int retry_after_seconds() const { return retry_after_; }
  ApiError& retry_after(int seconds);
  // Adds {reason, message} and perhaps a field to details.causes.
  ApiError& cause(std::string_view reason, std::string_view message, std::string_view field = "");
  // metadata.continue of the Status.
  void set_continue(std::string token) { continue_ = std::move(token); }
  void prefix_message(std::string_view prefix) { message_.insert(0, prefix); }
  [[nodiscard]] nlohmann::json to_json() const;
  [[nodiscard]] k8s::HttpResponse response() const;

 private:
  int code_;
  std::string reason_;
  std::string message_;
  int retry_after_ = 0;
  std::string continue_;
  std::shared_ptr<nlohmann::json> details_;  // Shared only to keep nlohmann out of this header.
};

template <class T>
using Outcome = std::expected<T, ApiError>;

// What the messages name: the resource and its group, and the object's kind.
struct Noun {
  std::string_view group;
  std::string_view resource;  // "daemonsets"
  std::string_view kind;      // "DaemonSet"
};

[[nodiscard]] ApiError not_found(const Noun& noun, std::string_view name);
[[nodiscard]] ApiError already_exists(const Noun& noun, std::string_view name);
[[nodiscard]] ApiError conflict(const Noun& noun, std::string_view name, std::string_view why);
// The message of a lost resourceVersion race.
[[nodiscard]] ApiError stale_write(const Noun& noun, std::string_view name);
[[nodiscard]] ApiError bad_request(std::string message);
[[nodiscard]] ApiError invalid(const Noun& noun, std::string_view name, const FieldErrors& errors);
[[nodiscard]] ApiError forbidden(const Noun& noun, std::string_view name, std::string_view why);
[[nodiscard]] ApiError method_not_allowed();
// Of a known group and version without that resource.
[[nodiscard]] ApiError unknown_resource();
[[nodiscard]] ApiError expired(std::string message);

// A JSON answer.
[[nodiscard]] k8s::HttpResponse json_response(int status, std::string body);

}  // namespace gso::sim
