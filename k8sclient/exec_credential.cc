#include "k8sclient/exec_credential.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/child_process.h"

namespace k8s {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

// A credential is renewed this long before it expires, so that a request on its way does not arrive too late.
constexpr std::chrono::seconds kExpiryMargin{10};

std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// KUBERNETES_EXEC_INFO: the ExecCredential that the plugin answers.
std::string exec_info(const ExecConfig& config) {
  Json info{{"apiVersion", config.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (!config.cluster_json.empty()) info["spec"]["cluster"] = Json::parse(config.cluster_json, nullptr, false);
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The end of what it wrote to stderr, where programs put the reason.
std::string shown(std::string_view err) {
  constexpr std::size_t kMost = 1000;
  while (!err.empty() && static_cast<unsigned char>(err.back()) <= ' ') err.remove_suffix(1);
  if (err.empty()) return "it wrote nothing to stderr";
  const bool cut = err.size() > kMost;
  if (cut) err.remove_prefix(err.size() - kMost);
  return fmt::format("stderr: {}{}", cut ? "…" : "", err);
}

class ExecCredential final : public CredentialSource {
 public:
  ExecCredential(ExecConfig config, Clock* clock)
      : config_(std::move(config)), clock_(clock), finished_(clock->make_signal()) {}

  asio::awaitable<Result<std::string>> token() override {
    while (running_) {
      const bool woken = co_await finished_->wait();
      if (!woken) co_return fail(Reason::cancelled, "cancelled while the credential plugin runs");
      if (!running_ && last_error_) co_return std::unexpected(*last_error_);
    }
    if (!fresh()) {
      const Result<void> renewed = co_await renew();
      if (!renewed) co_return std::unexpected(renewed.error());
    }
    co_return current_->token;
  }
  std::string client_cert_pem() const override { return current_ ? current_->client_cert_pem : std::string(); }
  std::string client_key_pem() const override { return current_ ? current_->client_key_pem : std::string(); }
  void invalidate() override { refused_ = true; }

 private:
  // Lets the waiting calls go on, also when the coroutine that runs the plugin is cancelled.
  struct Run {
    explicit Run(ExecCredential* s) : source(s) { source->running_ = true; }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() {
      source->running_ = false;
      source->finished_->notify();
    }
    ExecCredential* source;
  };

  [[nodiscard]] bool fresh() const {
    if (!current_ || refused_) return false;
    return !current_->expires || clock_->now() + kExpiryMargin < *current_->expires;
  }

  asio::awaitable<Result<void>> renew() {
    const Run run(this);
    last_error_.reset();
    ProcessSpec spec;
    spec.program = config_.command;
    spec.args = config_.args;
    spec.env = config_.env;
    spec.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info(config_));
    spec.time_limit = config_.time_limit;
    Result<ProcessResult> ended = co_await run_process(std::move(spec), clock_);
    Result<ExecStatus> status = judge(ended);
    if (!status) {
      last_error_ = status.error();
      co_return std::unexpected(status.error());
    }
    current_ = *std::move(status);
    refused_ = false;
    co_return Result<void>{};
  }

  Result<ExecStatus> judge(const Result<ProcessResult>& ended) const {
    const std::string who = fmt::format("credential plugin {}", config_.command);
    if (!ended) {
      const bool hint = ended.error().reason == Reason::not_found && !config_.install_hint.empty();
      return fail(Reason::unauthorized,
                  fmt::format("{}: {}{}", who, ended.error().message, hint ? ". " + config_.install_hint : ""));
    }
    if (ended->timed_out) {
      return fail(Reason::unauthorized,
                  fmt::format("{} was killed: it did not end within {}; {}", who,
                              format_go_duration(config_.time_limit), shown(ended->err)));
    }
    if (ended->exit_code != 0) {
      const std::string how = ended->signal != 0 ? fmt::format("was ended by signal {}", ended->signal)
                                                 : fmt::format("failed with exit code {}", ended->exit_code);
      return fail(Reason::unauthorized, fmt::format("{} {}; {}", who, how, shown(ended->err)));
    }
    if (ended->cut) return fail(Reason::unauthorized, who + " printed too much to be a credential");
    Result<ExecStatus> status = decode_exec_credential(ended->out, config_.api_version);
    if (!status) {
      return fail(Reason::unauthorized, fmt::format("{}: {}; {}", who, status.error().message, shown(ended->err)));
    }
    return status;
  }

  ExecConfig config_;
  Clock* clock_;
  std::unique_ptr<Signal> finished_;
  bool running_ = false;
  bool refused_ = false;
  std::optional<ExecStatus> current_;
  std::optional<Error> last_error_;  // Of the last run, for the calls that waited for it.
};

}  // namespace

Result<ExecStatus> decode_exec_credential(std::string_view json, std::string_view api_version) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return fail(Reason::decode, "its output is not a JSON object");
  if (const std::string kind = text_at(root, "kind"); kind != "ExecCredential") {
    return fail(Reason::decode, fmt::format("its output has kind \"{}\", expected ExecCredential", kind));
  }
  if (text_at(root, "apiVersion") != api_version) {
    return fail(Reason::decode, fmt::format("its output has apiVersion \"{}\", the kubeconfig says {}",
                                            text_at(root, "apiVersion"), api_version));
  }
  const auto status = root.find("status");
  if (status == root.end() || !status->is_object()) return fail(Reason::decode, "its output has no status");
  ExecStatus out{text_at(*status, "token"), text_at(*status, "clientCertificateData"),
                 text_at(*status, "clientKeyData"), std::nullopt};
  if (out.client_cert_pem.empty() != out.client_key_pem.empty()) {
    return fail(Reason::decode, "its output must have both clientCertificateData and clientKeyData, or none");
  }
  if (out.token.empty() && out.client_cert_pem.empty()) {
    return fail(Reason::decode, "its output has neither token nor clientCertificateData");
  }
  if (out.token.find_first_of(" \t\r\n") != std::string::npos) {
    return fail(Reason::decode, "its token has white space in it");
  }
  const std::string expires = text_at(*status, "expirationTimestamp");
  if (!expires.empty()) {
    out.expires = parse_rfc3339(expires);
    if (!out.expires) {
      return fail(Reason::decode, fmt::format("its expirationTimestamp \"{}\" is not an RFC 3339 time", expires));
    }
  }
  return out;
}

std::shared_ptr<CredentialSource> make_exec_credential(ExecConfig config, Clock* clock) {
  return std::make_shared<ExecCredential>(std::move(config), clock);
}

}  // namespace k8s
