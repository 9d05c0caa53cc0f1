#include "tests/conformance/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <utility>

#include "tests/conformance/json_paths.h"
#include "tests/conformance/normalizer.h"

namespace gso::conformance {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
using Variables = std::map<std::string, std::string>;

constexpr std::chrono::seconds kPatience{30};  // For an answer, an event, and what is expected eventually.
constexpr std::chrono::milliseconds kRetry{100};

constexpr const char* kNamespace = R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})";
constexpr const char* kAccount = R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})";
// What sequences make outside of their namespace, and the other namespaces that they make.
constexpr std::array<std::string_view, 4> kClusterScoped{
    "/api/v1/nodes", "/apis/gpusharing.dev/v1alpha1/sharingpolicies", "/apis/gpusharing.dev/v1alpha1/sharingrollouts",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"};
constexpr std::array<std::string_view, 3> kNamespaceSuffixes{"", "-second", "-going"};

std::string substitute(std::string text, const Variables& variables) {
  static const std::regex kRepeated(R"(\{(.)\*(\d+)\})");
  std::smatch match;
  while (std::regex_search(text, match, kRepeated)) {
    const std::string run(std::stoul(match[2].str()), match[1].str()[0]);
    text.replace(static_cast<std::size_t>(match.position(0)), static_cast<std::size_t>(match.length(0)), run);
  }
  for (const auto& [name, value] : variables) {
    const std::string placeholder = "{" + name + "}";
    for (std::size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + value.size())) {
      text.replace(at, placeholder.size(), value);
    }
  }
  return text;
}

json substitute(const json& value, const Variables& variables) {
  if (value.is_string()) return substitute(value.get<std::string>(), variables);
  if (value.is_array()) {
    json copy = json::array();
    for (const json& element : value) copy.push_back(substitute(element, variables));
    return copy;
  }
  if (value.is_object()) {
    json copy = json::object();
    for (const auto& [key, member] : value.items()) copy[substitute(key, variables)] = substitute(member, variables);
    return copy;
  }
  return value;
}

json parse_body(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  return parsed.is_discarded() ? json(text) : parsed;
}

json to_json(const k8s::HttpResponse& response) {
  json answer{{"status", response.status}, {"contentType", response.header("content-type")}};
  for (const auto& [name, value] : response.headers)
    if (name == "warning") answer["warnings"].push_back(value);
  if (!response.header("retry-after").empty()) answer["retryAfter"] = response.header("retry-after");
  answer["body"] = parse_body(response.body);
  return answer;
}

json no_answer(std::string why, json body = nullptr) {
  return json{{"error", std::move(why)}, {"body", std::move(body)}};
}

// An open watch, read line by line.
struct Watch {
  std::unique_ptr<k8s::ByteStream> stream;
  std::string pending;
};

class Player {
 public:
  Player(Server* server, const Sequence* sequence, std::string ns)
      : server_(server), sequence_(sequence), ns_(std::move(ns)), normalizer_(server->clock().now(), ns_) {
    variables_["ns"] = ns_;
  }

  asio::awaitable<Performance> play() {
    co_await prepare();
    for (std::size_t i = 0; i < sequence_->steps.size() && performance_.failure.empty(); ++i) {
      const Step& step = sequence_->steps[i];
      for (int turn = 0; turn < step.repeat && performance_.failure.empty(); ++turn) {
        variables_["i"] = std::to_string(turn);
        title_ = fmt::format("step {}, {}", i + 1, step.title());
        co_await perform(&step);
      }
    }
    watches_.clear();
    co_await tidy();
    co_return std::move(performance_);
  }

 private:
  asio::awaitable<void> prepare() {
    const auto made = co_await post("/api/v1/namespaces", fmt::format(kNamespace, ns_));
    if (!made || made->status != 201) {
      performance_.failure = "cannot make namespace " + ns_ + ": " + (made ? made->body : made.error().message);
      co_return;
    }
    // Without a controller-manager, this is what lets pods be made. A server that makes the account itself says 409.
    const auto account_made = co_await post("/api/v1/namespaces/" + ns_ + "/serviceaccounts", kAccount);
    if (!account_made) performance_.failure = account_made.error().message;
  }

  // Removes what is outside of the namespace, then the namespace. Servers are thrown away: answers do not matter.
  asio::awaitable<void> tidy() {
    for (const std::string_view collection : kClusterScoped) {
      const auto gone = co_await remove(std::string(collection) + "?labelSelector=sequence%3D" + ns_);
      if (!gone) co_return;
    }
    for (const std::string_view suffix : kNamespaceSuffixes) {
      const auto gone = co_await remove("/api/v1/namespaces/" + ns_ + std::string(suffix));
      if (!gone) co_return;
    }
  }

  asio::awaitable<k8s::Result<k8s::HttpResponse>> post(std::string path, std::string body) {
    k8s::HttpRequest request;
    request.method = k8s::Method::post;
    request.path = std::move(path);
    request.body = std::move(body);
    request.content_type = "application/json";
    auto answer = co_await server_->transport().send(std::move(request));
    co_return answer;
  }

  asio::awaitable<k8s::Result<k8s::HttpResponse>> remove(std::string path) {
    k8s::HttpRequest request;
    request.method = k8s::Method::del;
    request.path = std::move(path);
    auto answer = co_await server_->transport().send(std::move(request));
    co_return answer;
  }

  asio::awaitable<void> perform(const Step* step) {
    if (step->kind == Step::Kind::forget_history) {
      const auto forgotten = co_await server_->forget_history();
      if (!forgotten) performance_.failure = title_ + ": " + forgotten.error().message;
      co_return;
    }
    const k8s::MonoTime deadline = server_->clock().monotonic() + kPatience;
    while (true) {
      json answer;
      if (step->kind == Step::Kind::events)
        answer = co_await read_events(step);
      else if (step->kind == Step::Kind::watch)
        answer = co_await open_watch(step);
      else
        answer = co_await send(step);
      std::string wrong = compare_with_expectation(*step, answer);
      if (wrong.empty() || !step->eventually || server_->clock().monotonic() > deadline) {
        keep(*step, std::move(answer), std::move(wrong));
        co_return;
      }
      co_await server_->clock().sleep_for(kRetry);
    }
  }

  [[nodiscard]] k8s::HttpRequest make_request(const Step& step) const {
    k8s::HttpRequest request;
    request.method = step.method;
    request.path = substitute(step.target, variables_);
    request.accept = step.accept;
    request.timeout = kPatience;
    const bool writes =
        step.method == k8s::Method::post || step.method == k8s::Method::put || step.method == k8s::Method::patch;
    const auto add = [&request](const char* parameter) {
      request.path += (request.path.find('?') == std::string::npos ? "?" : "&") + std::string(parameter);
    };
    // The name would otherwise be made of the User-Agent, which is the transport's business.
    if (writes && step.add_field_manager && request.path.find("fieldManager=") == std::string::npos)
      add("fieldManager=conformance");
    if (step.kind == Step::Kind::watch) add("watch=true");
    if (step.raw) request.body = substitute(*step.raw, variables_);
    if (step.body) request.body = substitute(*step.body, variables_).dump();
    if (step.raw || step.body)
      request.content_type = step.content_type.empty() ? "application/json" : step.content_type;
    return request;
  }

  asio::awaitable<json> send(const Step* step) {
    const k8s::Result<k8s::HttpResponse> response = co_await server_->transport().send(make_request(*step));
    if (!response) co_return no_answer(response.error().message);
    co_return to_json(*response);
  }

  asio::awaitable<json> open_watch(const Step* step) {
    k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await server_->transport().open(make_request(*step));
    if (!stream) co_return no_answer(stream.error().message);
    json answer = json::object();
    answer["status"] = (*stream)->status();
    answer["contentType"] = (*stream)->header("content-type");
    if ((*stream)->status() == 200) {
      watches_[step->as] = Watch{*std::move(stream), ""};
      co_return answer;
    }
    std::string body;
    while (true) {
      const k8s::Result<std::string> part = co_await (*stream)->read(kPatience);
      if (!part || part->empty()) break;
      body += *part;
    }
    answer["body"] = parse_body(body);
    co_return answer;
  }

  // The next line, or what ended the stream.
  asio::awaitable<k8s::Result<std::string>> read_line(Watch* watch) {
    while (true) {
      const std::size_t newline = watch->pending.find('\n');
      if (newline != std::string::npos) {
        std::string line = watch->pending.substr(0, newline);
        watch->pending.erase(0, newline + 1);
        co_return line;
      }
      k8s::Result<std::string> part = co_await watch->stream->read(kPatience);
      if (!part) co_return std::unexpected(part.error());
      if (part->empty()) co_return std::string{};
      watch->pending += *part;
    }
  }

  asio::awaitable<json> read_events(const Step* step) {
    json events = json::array();
    const auto watch = watches_.find(step->target);
    if (watch == watches_.end()) co_return no_answer("there is no watch " + step->target);
    while (step->count == 0 || events.size() < step->count) {
      const k8s::Result<std::string> line = co_await read_line(&watch->second);
      if (!line) co_return no_answer(line.error().message, std::move(events));
      if (line->empty()) {
        if (step->until == "end") break;
        co_return no_answer("the watch ended", std::move(events));
      }
      json event = parse_body(*line);
      const std::string type = event.value("type", "");
      if (type == "BOOKMARK" && step->until != "BOOKMARK") continue;
      events.push_back(std::move(event));
      if (!step->until.empty() && type == step->until) break;
    }
    json answer = json::object();
    answer["body"] = std::move(events);
    co_return answer;
  }

  // What is wrong with an answer, or "".
  [[nodiscard]] std::string compare_with_expectation(const Step& step, const json& answer) const {
    if (answer.contains("error"))
      return answer["error"].get<std::string>() + ": " + answer.value("body", json()).dump();
    const json body = answer.value("body", json());
    if (!step.status.empty() &&
        std::find(step.status.begin(), step.status.end(), answer["status"]) == step.status.end()) {
      return fmt::format("status {}, not {}: {}", answer["status"].dump(), fmt::join(step.status, " or "), body.dump());
    }
    if (!step.reason.empty() && (!body.is_object() || body.value("reason", "") != step.reason))
      return fmt::format("the reason is not {}: {}", step.reason, body.dump());
    if (step.kind == Step::Kind::events) {
      std::vector<std::string> types;
      for (const json& event : body) types.push_back(event.value("type", ""));
      if (types != step.types)
        return fmt::format("events {}, not {}: {}", fmt::join(types, " "), fmt::join(step.types, " "), body.dump());
    }
    for (const auto& [path, wanted_source] : step.expect) {
      const json* value = find(body, substitute(path, variables_));
      const json wanted = substitute(wanted_source, variables_);
      if ((value == nullptr ? json() : *value) != wanted)
        return fmt::format("{} is {}, not {}", path, value == nullptr ? "absent" : value->dump(), wanted.dump());
    }
    return "";
  }

  void keep(const Step& step, json answer, std::string wrong) {
    const json body = answer.value("body", json());
    for (const auto& [name, path] : step.capture) {
      const json* value = find(body, path);
      if (value != nullptr) variables_[name] = value->is_string() ? value->get<std::string>() : value->dump();
    }
    if (!wrong.empty()) performance_.failure = title_ + ": " + wrong;
    if (std::find(step.ignore.begin(), step.ignore.end(), "*") != step.ignore.end()) {
      answer = json::object();
    } else if (answer.contains("body")) {
      // The whole body, also where only a part is compared: the numbers of placeholders count all that was seen.
      normalizer_.apply(answer["body"]);
      select(step, answer["body"]);
    }
    performance_.answers.push_back({title_, std::move(answer)});
  }

  // Leaves of the body what is to be compared.
  void select(const Step& step, json& body) const {
    for (const std::string& path : step.ignore) erase(body, substitute(path, variables_));
    if (!step.only) return;
    json chosen = json::object();
    for (const std::string& path : *step.only) {
      const json* value = find(body, substitute(path, variables_));
      chosen[path] = value == nullptr ? json() : *value;
    }
    body = std::move(chosen);
  }

  Server* server_;
  const Sequence* sequence_;
  std::string ns_;
  std::string title_;
  Normalizer normalizer_;
  Variables variables_;
  std::map<std::string, Watch> watches_;
  Performance performance_;
};

}  // namespace

asio::awaitable<Performance> play(Server* server, const Sequence* sequence, std::string ns) {
  Player player(server, sequence, std::move(ns));
  Performance performance = co_await player.play();
  co_return performance;
}

}  // namespace gso::conformance
