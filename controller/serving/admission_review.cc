// See admission_review.h.
#include "controller/serving/admission_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "reconcilers/lint/admission.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

// Far more than any object that this webhook is asked about has. Deeper texts could exhaust the stack.
constexpr int kMostLevels = 200;

// How deep lists and objects of a JSON text are nested, whether the text is valid or not.
int levels_of(std::string_view text) {
  int now = 0;
  int most = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      most = std::max(most, ++now);
    } else if (c == '}' || c == ']') {
      --now;
    }
  }
  return most;
}

bool is_deletion(const Json& request) {
  return text_at(request, "operation") == "DELETE";
}

// The member with the object that the request is about.
std::string_view subject_of(const Json& request) {
  return is_deletion(request) ? "oldObject" : "object";
}

// The request of an AdmissionReview; nullopt if the text is none.
std::optional<Json> request_of(std::string_view body) {
  if (levels_of(body) > kMostLevels) return std::nullopt;
  const Json review = Json::parse(body, nullptr, false);
  if (text_at(review, "apiVersion") != "admission.k8s.io/v1" || text_at(review, "kind") != "AdmissionReview")
    return std::nullopt;
  Json request = object_at(review, "request");
  const bool usable = !text_at(request, "uid").empty() && member_at(request, subject_of(request)) != nullptr;
  return usable ? std::optional(std::move(request)) : std::nullopt;
}

k8s::ObjectKey key_of(const Json& object) {
  const Json metadata = object_at(object, "metadata");
  return {text_at(metadata, "namespace"), text_at(metadata, "name")};
}

bool is_checked(const Json& object, const AdmissionParts& parts) {
  return text_at(object, "kind") != "ConfigMap" || parts.holds_profiles(key_of(object));
}

// metav1.Status, as the API server itself answers an object that it finds invalid: `kubectl edit` opens again, with a
// line for each cause, and so it does for no other code.
Json status_of(const Json& object, const AdmissionVerdict& verdict) {
  const std::string kind = text_at(object, "kind");
  const Json metadata = object_at(object, "metadata");
  const std::string name = text_at(metadata, "name", text_at(metadata, "generateName"));
  Json causes = Json::array();
  std::string lines;
  for (const AdmissionVerdict::Cause& cause : verdict.causes) {
    causes.push_back({{"reason", "FieldValueInvalid"}, {"message", cause.line}, {"field", cause.field}});
    if (causes.size() <= kMostNames) lines += "\n" + cause.line;
  }
  if (causes.size() > kMostNames) lines += fmt::format("\nand {} more", causes.size() - kMostNames);
  return {{"status", "Failure"},
          {"code", 422},
          {"reason", "Invalid"},
          {"message", fmt::format("{} {} is invalid:{}", kind, name, lines)},
          {"details", {{"name", name}, {"kind", kind}, {"causes", std::move(causes)}}}};
}

AdmissionVerdict verdict_of(const Json& request, const AdmissionParts& parts) {
  const Json* object = member_at(request, subject_of(request));
  if (!is_checked(*object, parts)) return {};
  AdmissionRules rules{parts.kai(), parts.refuse_pods, flag_at(request, "dryRun"), {}};
  if (parts.key_users) {
    rules.key_users = [&, users = std::function<std::string(const std::string&)>()](const std::string& key) mutable {
      if (!users) users = parts.key_users(key_of(*object));
      return users(key);
    };
  }
  if (is_deletion(request)) return judge_deletion(*object, rules);
  const Json* before = member_at(request, "oldObject");
  return judge_admission(*object, before == nullptr ? Json() : *before, rules);
}

asio::awaitable<HttpAnswer> answer(std::shared_ptr<const AdmissionParts> parts, HttpRequest request) {
  if (request.path != kAdmissionPath) {
    co_return text_answer(404, fmt::format("not found; available: {}\n", kAdmissionPath));
  }
  if (request.method != "POST") {
    HttpAnswer refused = text_answer(405, "only POST\n");
    refused.headers.emplace_back("Allow", "POST");
    co_return refused;
  }
  co_return answer_review(request.body, *parts);
}

}  // namespace

HttpAnswer answer_review(std::string_view body, const AdmissionParts& parts) {
  const auto count = [&](std::string_view kind, std::string_view result) {
    if (parts.metrics == nullptr) return;
    parts.metrics->add("gpusharing_admission_reviews_total",
                       {{"kind", std::string(kind)}, {"result", std::string(result)}});
  };
  const std::optional<Json> request = request_of(body);
  if (!request) {
    count("", "unreadable");
    return text_answer(400, "not an AdmissionReview of admission.k8s.io/v1 with a request and its object\n");
  }
  const AdmissionVerdict verdict = verdict_of(*request, parts);
  Json response{{"uid", text_at(*request, "uid")}, {"allowed", verdict.allowed()}};
  const Json& object = *member_at(*request, subject_of(*request));
  if (!verdict.allowed()) response["status"] = status_of(object, verdict);
  for (std::string& warning : kubectl_warnings(verdict)) response["warnings"].push_back(std::move(warning));
  // Only kinds that the webhook knows: a label of a metric must not have any text.
  const std::string kind = text_at(object, "kind");
  const bool known = kind == "ConfigMap" || kind == "SharingPolicy" || kind == "Pod";
  count(known ? kind : "other", !verdict.allowed() ? "refused" : verdict.warnings.empty() ? "allowed" : "warned");
  const Json review{
      {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
  return {200, "application/json", dump(review)};
}

HttpHandler make_admission_handler(AdmissionParts parts) {
  return [shared = std::make_shared<const AdmissionParts>(std::move(parts))](HttpRequest request) {
    return answer(shared, std::move(request));
  };
}

}  // namespace gso
