// See admission_review.h.
#include "controller/serving/admission_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "k8sclient/value/error.h"
#include "reconcilers/lint/admission.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

// Far more than any object that this webhook is asked about has. Deeper texts could exhaust the stack.
constexpr std::size_t kMostLevels = 200;
// Of one value beside the objects: a uid, a name, a kind with its group.
constexpr std::size_t kMostHeadBytes = 2048;

// Objects of other kinds are allowed unread.
struct JudgedKind {
  std::string_view kind;
  k8s::TokenBucket AdmissionTime::* time;
};
constexpr auto kJudgedKinds = std::to_array<JudgedKind>({{"ConfigMap", &AdmissionTime::config_maps},
                                                         {"SharingPolicy", &AdmissionTime::policies},
                                                         {"Pod", &AdmissionTime::workloads},
                                                         {"Deployment", &AdmissionTime::workloads},
                                                         {"StatefulSet", &AdmissionTime::workloads},
                                                         {"DaemonSet", &AdmissionTime::workloads},
                                                         {"Job", &AdmissionTime::workloads},
                                                         {"CronJob", &AdmissionTime::workloads}});
// Of an object's JSON, and of the values in it at any level. A judgement takes at most about 50 ms of the one thread,
// which renews the Lease as well, and 20 MiB; what is larger is allowed with a warning.
constexpr std::size_t kMostObjectBytes = std::size_t{256} << 10;
constexpr std::size_t kMostValues = 8000;

constexpr std::size_t kCut = std::string_view::npos;  // The text ends before the value does.

std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// Behind the string whose opening quote is at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at)
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  return kCut;
}

// One JSON value, measured without being kept. Its grammar is left to whoever reads it afterwards.
struct Extent {
  std::size_t bytes = 0;  // kCut: it has no end.
  std::size_t levels = 0;
  std::size_t values = 0;
};
Extent extent_of(std::string_view text) {
  Extent out{kCut, 0, 1};
  std::size_t level = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      if (at == kCut) return out;
    } else {
      const bool ends = c == '}' || c == ']' || c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
      if (level == 0 && ends) {
        out.bytes = at;
        return out;
      }
      if (c == '{' || c == '[') out.levels = std::max(out.levels, ++level);
      if (c == '{' || c == '[' || c == ',') ++out.values;
      if (c == '}' || c == ']') --level;
      ++at;
    }
    if (level == 0 && (c == '"' || c == '}' || c == ']')) {
      out.bytes = at;
      return out;
    }
  }
  return out;
}

// Visits the members of the JSON object at the beginning of the text: visit(key, the text from its value on) returns
// the bytes of the value. Returns those of the object; kCut if it is none, or has no end.
template <class Visit>
std::size_t each_member(std::string_view text, Visit visit) {
  std::size_t at = skip_space(text, 0);
  if (at == text.size() || text[at] != '{') return kCut;
  for (at = skip_space(text, at + 1); at < text.size(); at = skip_space(text, at + 1)) {
    if (text[at] == '}') return at + 1;
    const std::size_t end = text[at] == '"' ? end_of_string(text, at) : kCut;
    if (end == kCut) return kCut;
    const std::string_view key = text.substr(at + 1, end - at - 2);
    at = skip_space(text, end);
    if (at == text.size() || text[at] != ':') return kCut;
    at = skip_space(text, at + 1);
    const std::size_t bytes = visit(key, text.substr(at));
    if (bytes == kCut) return kCut;
    at = skip_space(text, at + bytes);
    if (at == text.size()) return kCut;
    if (text[at] == '}') return at + 1;
    if (text[at] != ',') return kCut;
  }
  return kCut;
}

// A short value of that text; null if it is none.
Json head_value(std::string_view text, std::size_t bytes) {
  return bytes <= kMostHeadBytes ? Json::parse(text.substr(0, bytes), nullptr, false) : Json();
}

std::string string_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

// An object of a review, as text.
struct Subject {
  std::string_view json;  // Empty: absent.
  Extent extent;
  [[nodiscard]] bool fits() const { return extent.bytes <= kMostObjectBytes && extent.values <= kMostValues; }
};

// An AdmissionReview, as far as it is read before anything is known about its object. The API server writes what the
// request is about before the objects, so that the beginning of a review is enough.
struct Review {
  std::string api_version;
  std::string kind;
  std::string uid;
  std::string operation;
  std::string object_kind;
  k8s::ObjectKey key;
  bool dry_run = false;
  bool complete = false;  // The text has an end.
  Subject object;
  Subject before;

  [[nodiscard]] bool is_one() const {
    return api_version == "admission.k8s.io/v1" && kind == "AdmissionReview" && !uid.empty();
  }
  [[nodiscard]] bool is_deletion() const { return operation == "DELETE"; }
  // The object that the request is about.
  [[nodiscard]] const Subject& subject() const { return is_deletion() ? before : object; }
};

// What the object itself says, of a client that does not say it beside the object.
void identify(std::string_view object, Review& out) {
  const bool is_named = !out.key.name.empty();
  each_member(object, [&](std::string_view name, std::string_view rest) {
    if (name == "metadata") {
      return each_member(rest, [&](std::string_view field, std::string_view value) {
        const std::size_t bytes = extent_of(value).bytes;
        if (field == "namespace" && !is_named) out.key.ns = string_of(head_value(value, bytes));
        if (field == "name" && !is_named) out.key.name = string_of(head_value(value, bytes));
        return bytes;
      });
    }
    const std::size_t bytes = extent_of(rest).bytes;
    if (name == "kind" && out.object_kind.empty()) out.object_kind = string_of(head_value(rest, bytes));
    return bytes;
  });
}

std::size_t read_request(std::string_view text, Review& out) {
  return each_member(text, [&](std::string_view name, std::string_view rest) {
    if (name == "object" || name == "oldObject") {
      const Extent extent = extent_of(rest);
      const std::string_view json = extent.bytes == kCut ? std::string_view() : rest.substr(0, extent.bytes);
      if (json != "null") (name == "object" ? out.object : out.before) = {json, extent};
      return extent.bytes;
    }
    const std::size_t bytes = extent_of(rest).bytes;
    const Json value = head_value(rest, bytes);
    if (name == "uid") out.uid = string_of(value);
    if (name == "operation") out.operation = string_of(value);
    if (name == "namespace") out.key.ns = string_of(value);
    if (name == "name") out.key.name = string_of(value);
    if (name == "kind") out.object_kind = text_at(value, "kind");
    if (name == "dryRun") out.dry_run = value == true;
    return bytes;
  });
}

Review read_review(std::string_view body) {
  Review out;
  const std::size_t end = each_member(body, [&](std::string_view name, std::string_view rest) {
    if (name == "request") return read_request(rest, out);
    const std::size_t bytes = extent_of(rest).bytes;
    if (name == "apiVersion") out.api_version = string_of(head_value(rest, bytes));
    if (name == "kind") out.kind = string_of(head_value(rest, bytes));
    return bytes;
  });
  out.complete = end != kCut && skip_space(body, end) == body.size();
  if (out.object_kind.empty() || out.key.name.empty()) identify(out.subject().json, out);
  return out;
}

// Null: the object is not judged.
const JudgedKind* judged_kind(const Review& review, const AdmissionParts& parts) {
  const auto found = std::ranges::find(kJudgedKinds, review.object_kind, &JudgedKind::kind);
  const bool judged = found != kJudgedKinds.end() && (found->kind != "ConfigMap" || parts.holds_profiles(review.key));
  return judged ? &*found : nullptr;
}

// The object is allowed; `why`: it was not judged.
AdmissionVerdict unchecked(const Review& review, std::string_view why) {
  std::string kind = review.object_kind;
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  AdmissionVerdict out;
  out.command = "gpu-sharing-operator lint FILE";
  out.warnings.push_back(
      fmt::format("{}/{} {}. Check its file: {}", kind, shown_value(review.key.name), why, out.command));
  return out;
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

AdmissionVerdict verdict_of(const Review& review, const Json& object, const Json& before, const AdmissionParts& parts) {
  AdmissionRules rules{parts.pod_rules(), parts.refuse_pods, review.dry_run, {}};
  if (parts.key_users) {
    rules.key_users = [&, users = std::function<std::string(const std::string&)>()](const std::string& key) mutable {
      if (!users) users = parts.key_users(review.key);
      return users(key);
    };
  }
  return review.is_deletion() ? judge_deletion(before, rules) : judge_admission(object, before, rules);
}

HttpAnswer answer_with(const Review& review, const AdmissionVerdict& verdict, const Json& object) {
  Json response{{"uid", review.uid}, {"allowed", verdict.allowed()}};
  if (!verdict.allowed()) response["status"] = status_of(object, verdict);
  for (std::string& warning : kubectl_warnings(verdict)) response["warnings"].push_back(std::move(warning));
  const Json answer{
      {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
  return {200, "application/json", dump(answer)};
}

boost::asio::awaitable<HttpAnswer> answer(std::shared_ptr<const AdmissionParts> parts, HttpRequest request) {
  if (request.path != kAdmissionPath)
    co_return text_answer(404, fmt::format("not found; available: {}\n", kAdmissionPath));
  if (request.method != "POST") {
    HttpAnswer refused = text_answer(405, "only POST\n");
    refused.headers.emplace_back("Allow", "POST");
    co_return refused;
  }
  if (parts->clients_only && !request.client)
    co_return text_answer(401, "send a client certificate of the authority in --webhook-client-ca\n");
  co_return answer_review(request.body, *parts, request.body_size > request.body.size());
}

}  // namespace

HttpAnswer answer_review(std::string_view body, const AdmissionParts& parts, bool cut) {
  const auto count = [&](std::string_view kind, std::string_view result) {
    if (parts.metrics == nullptr) return;
    parts.metrics->add("gpusharing_admission_reviews_total",
                       {{"kind", std::string(kind)}, {"result", std::string(result)}});
  };
  const auto unreadable = [&] {
    count("", "unreadable");
    return text_answer(400, "not an AdmissionReview of admission.k8s.io/v1 with a request and its object\n");
  };
  const auto now = [&] { return parts.clock == nullptr ? k8s::MonoTime() : parts.clock->monotonic(); };
  const k8s::MonoTime begun = now();
  k8s::TokenBucket* bucket = &parts.time->workloads;
  // The time that the review needs, from its reading on.
  const k8s::AtEnd charges([&] {
    const k8s::MonoTime ended = now();
    bucket->take(ended, std::chrono::duration<double, std::milli>(ended - begun).count());
  });
  const Review review = read_review(body);
  if (!review.is_one() || (!cut && (!review.complete || review.subject().json.empty()))) return unreadable();
  // Only kinds that the webhook knows: a label of a metric must not have any text.
  const std::string& kind = review.object_kind;
  const bool known = kind == "ConfigMap" || kind == "SharingPolicy" || kind == "Pod";
  const std::string_view label = known ? std::string_view(kind) : "other";
  const JudgedKind* judged = judged_kind(review, parts);
  if (judged == nullptr) {
    count(label, "allowed");
    return answer_with(review, {}, {});
  }
  bucket = &((*parts.time).*(judged->time));
  if (cut || !review.object.fits() || !review.before.fits()) {
    count(label, "too_large");
    return answer_with(review,
                       unchecked(review, fmt::format("is too large to check: the webhook checks at most {} KiB of JSON "
                                                     "and {} values",
                                                     kMostObjectBytes >> 10, kMostValues)),
                       {});
  }
  if (parts.clock != nullptr && !bucket->has_credit(begun)) {
    count(label, "busy");
    return answer_with(review, unchecked(review, "was not checked: the webhook has too many objects to check"), {});
  }
  if (std::max(review.object.extent.levels, review.before.extent.levels) > kMostLevels) return unreadable();
  const auto parsed = [](const Subject& subject) {
    return subject.json.empty() ? Json() : Json::parse(subject.json, nullptr, false);
  };
  const Json object = parsed(review.object);
  const Json before = parsed(review.before);
  if (object.is_discarded() || before.is_discarded()) return unreadable();
  const AdmissionVerdict verdict = verdict_of(review, object, before, parts);
  count(label, !verdict.allowed() ? "refused" : verdict.warnings.empty() ? "allowed" : "warned");
  return answer_with(review, verdict, object);
}

HttpHandler make_admission_handler(AdmissionParts parts) {
  return [shared = std::make_shared<const AdmissionParts>(std::move(parts))](HttpRequest request) {
    return answer(shared, std::move(request));
  };
}

}  // namespace gso
