// Failures as metav1.Status. Messages follow k8s.io/apimachinery's api/errors and util/validation/field.
#include "tests/sim/apiserver/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace gso::sim {
namespace {

using nlohmann::json;

std::string qualified(std::string_view name, std::string_view group) {
  return group.empty() ? std::string(name) : fmt::format("{}.{}", name, group);
}

json details_of(std::string_view group, std::string_view kind, std::string_view name) {
  json details = json::object();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  details["kind"] = kind;
  return details;
}

std::string_view type_text(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::invalid:
    case FieldError::Type::type_invalid:
      return "Invalid value";
    case FieldError::Type::required:
      return "Required value";
    case FieldError::Type::duplicate:
      return "Duplicate value";
    case FieldError::Type::forbidden:
      return "Forbidden";
    case FieldError::Type::not_supported:
      return "Unsupported value";
    case FieldError::Type::too_long:
      return "Too long";
    case FieldError::Type::too_many:
      return "Too many";
    case FieldError::Type::not_found:
      return "Not found";
  }
  return "";
}

}  // namespace

std::string FieldError::body() const {
  const bool with_value = type != Type::required && type != Type::forbidden && type != Type::too_long;
  std::string text(type_text(type));
  if (with_value && !value.empty()) text += ": " + value;
  if (!detail.empty()) text += ": " + detail;
  return text;
}

std::string_view FieldError::reason() const {
  switch (type) {
    case Type::invalid:
      return "FieldValueInvalid";
    case Type::type_invalid:
      return "FieldValueTypeInvalid";
    case Type::required:
      return "FieldValueRequired";
    case Type::duplicate:
      return "FieldValueDuplicate";
    case Type::forbidden:
      return "FieldValueForbidden";
    case Type::not_supported:
      return "FieldValueNotSupported";
    case Type::too_long:
      return "FieldValueTooLong";
    case Type::too_many:
      return "FieldValueTooMany";
    case Type::not_found:
      return "FieldValueNotFound";
  }
  return "";
}

FieldError invalid_value(std::string field, const json& value, std::string detail) {
  return {FieldError::Type::invalid, std::move(field), value.dump(), std::move(detail)};
}
FieldError required_value(std::string field, std::string detail) {
  return {FieldError::Type::required, std::move(field), "", std::move(detail)};
}
FieldError forbidden_value(std::string field, std::string detail) {
  return {FieldError::Type::forbidden, std::move(field), "", std::move(detail)};
}
FieldError duplicate_value(std::string field, const json& value) {
  return {FieldError::Type::duplicate, std::move(field), value.dump(), ""};
}
FieldError too_long(std::string field, std::size_t limit) {
  return {FieldError::Type::too_long, std::move(field), "", fmt::format("may not be more than {} bytes", limit)};
}
FieldError not_supported(std::string field, const json& value, const std::vector<std::string>& supported) {
  std::vector<std::string> quoted;
  for (const auto& s : supported) quoted.push_back(json(s).dump());
  return {FieldError::Type::not_supported, std::move(field), value.dump(),
          fmt::format("supported values: {}", fmt::join(quoted, ", "))};
}

ApiError::ApiError(int code, std::string reason, std::string message)
    : code_(code), reason_(std::move(reason)), message_(std::move(message)) {}
ApiError::ApiError(int code, std::string reason, std::string message, json details)
    : code_(code),
      reason_(std::move(reason)),
      message_(std::move(message)),
      details_(std::make_shared<json>(std::move(details))) {}

ApiError& ApiError::retry_after(int seconds) {
  retry_after_ = seconds;
  if (details_ == nullptr) details_ = std::make_shared<json>(json::object());
  (*details_)["retryAfterSeconds"] = seconds;
  return *this;
}

ApiError& ApiError::cause(std::string_view reason, std::string_view message, std::string_view field) {
  if (details_ == nullptr) details_ = std::make_shared<json>(json::object());
  json entry = {{"reason", reason}, {"message", message}};
  if (!field.empty()) entry["field"] = field;
  (*details_)["causes"].push_back(std::move(entry));
  return *this;
}

json ApiError::to_json() const {
  json status = {{"kind", "Status"},    {"apiVersion", "v1"},  {"metadata", json::object()},
                 {"status", "Failure"}, {"message", message_}, {"code", code_}};
  if (!reason_.empty()) status["reason"] = reason_;
  if (details_ != nullptr) status["details"] = *details_;
  if (!continue_.empty()) status["metadata"]["continue"] = continue_;
  return status;
}

k8s::HttpResponse ApiError::response() const {
  k8s::HttpResponse response = json_response(code_, to_json().dump() + "\n");
  if (retry_after_ > 0) response.headers.emplace_back("retry-after", std::to_string(retry_after_));
  return response;
}

ApiError not_found(const Noun& noun, std::string_view name) {
  return {404, "NotFound", fmt::format("{} \"{}\" not found", qualified(noun.resource, noun.group), name),
          details_of(noun.group, noun.resource, name)};
}

ApiError already_exists(const Noun& noun, std::string_view name) {
  return {409, "AlreadyExists", fmt::format("{} \"{}\" already exists", qualified(noun.resource, noun.group), name),
          details_of(noun.group, noun.resource, name)};
}

ApiError conflict(const Noun& noun, std::string_view name, std::string_view why) {
  return {
      409, "Conflict",
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", qualified(noun.resource, noun.group), name, why),
      details_of(noun.group, noun.resource, name)};
}

ApiError stale_write(const Noun& noun, std::string_view name) {
  return conflict(noun, name,
                  "the object has been modified; please apply your changes to the latest version and try again");
}

ApiError bad_request(std::string message) {
  return {400, "BadRequest", std::move(message)};
}

ApiError invalid(const Noun& noun, std::string_view name, const FieldErrors& errors) {
  json details = details_of(noun.group, noun.kind, name);
  std::vector<std::string> texts;
  std::set<std::string> seen;  // The real server's aggregate drops repeated messages, its causes keep them.
  for (const FieldError& error : errors) {
    details["causes"].push_back({{"reason", error.reason()}, {"message", error.body()}, {"field", error.field}});
    std::string text = fmt::format("{}: {}", error.field, error.body());
    if (seen.insert(text).second) texts.push_back(std::move(text));
  }
  const std::string all = fmt::format("{}", fmt::join(texts, ", "));
  return {422, "Invalid",
          fmt::format("{} \"{}\" is invalid: {}", qualified(noun.kind, noun.group), name,
                      texts.size() == 1 ? all : "[" + all + "]"),
          std::move(details)};
}

ApiError forbidden(const Noun& noun, std::string_view name, std::string_view why) {
  const std::string what = qualified(noun.resource, noun.group);
  return {403, "Forbidden",
          name.empty() ? fmt::format("{} is forbidden: {}", what, why)
                       : fmt::format("{} \"{}\" is forbidden: {}", what, name, why),
          details_of(noun.group, noun.resource, name)};
}

ApiError method_not_allowed() {
  return {405, "MethodNotAllowed", "the server does not allow this method on the requested resource", json::object()};
}

ApiError unknown_resource() {
  return {404, "NotFound", "the server could not find the requested resource", json::object()};
}

ApiError expired(std::string message) {
  return {410, "Expired", std::move(message)};
}

k8s::HttpResponse json_response(int status, std::string body) {
  k8s::HttpResponse response;
  response.status = status;
  response.headers.emplace_back("content-type", "application/json");
  response.body = std::move(body);
  return response;
}

}  // namespace gso::sim
