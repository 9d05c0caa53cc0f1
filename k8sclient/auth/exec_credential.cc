#include "k8sclient/auth/exec_credential.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>

#include "k8sclient/auth/child_process.h"
#include "k8sclient/backoff.h"
#include "k8sclient/value/json_access.h"

namespace k8s {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

// A credential is renewed this long before it expires, so that a request on its way does not arrive too late.
constexpr std::chrono::seconds kExpiryMargin{10};
// A plugin that has failed is not run again for so long; twice as long after each further failure, up to a minute.
constexpr Backoff kBackoff{std::chrono::seconds(1), std::chrono::minutes(1)};

// KUBERNETES_EXEC_INFO: the ExecCredential that the plugin answers.
std::string exec_info(const ExecConfig& config) {
  const bool interactive = config.interaction.input >= 0;
  Json info{{"apiVersion", config.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", interactive}}}};
  if (!config.cluster_json.empty()) info["spec"]["cluster"] = Json::parse(config.cluster_json, nullptr, false);
  return dump(info);
}

// The end of what it wrote to stderr, where programs put the reason.
std::string shown(const ExecConfig& config, std::string_view err) {
  constexpr std::size_t kMost = 1000;
  if (config.interaction.messages >= 0) return "what it wrote to stderr is above";
  err = err.substr(0, err.find_last_not_of(" \t\r\n") + 1);
  if (err.empty()) return "it wrote nothing to stderr";
  const bool cut = err.size() > kMost;
  if (cut) err.remove_prefix(err.size() - kMost);
  return fmt::format("stderr: {}{}", cut ? "…" : "", err);
}

// Judges how the plugin ended.
Result<ExecStatus> judge(const ExecConfig& config, const Result<ProcessResult>& ended) {
  const auto failed = [&config](std::string_view how) {
    return fail(Reason::unauthorized, fmt::format("credential plugin {}{}", config.command, how));
  };
  if (!ended) {
    const bool hint = ended.error().reason == Reason::not_found && !config.install_hint.empty();
    return failed(fmt::format(": {}{}", ended.error().message, hint ? ". " + config.install_hint : ""));
  }
  const std::string said = shown(config, ended->err);
  if (ended->timed_out) {
    const std::string limit = format_go_duration(config.time_limit);
    return failed(fmt::format(" was killed: it did not end within {}; {}", limit, said));
  }
  if (ended->signal != 0) return failed(fmt::format(" was ended by signal {}; {}", ended->signal, said));
  if (ended->exit_code != 0) return failed(fmt::format(" failed with exit code {}; {}", ended->exit_code, said));
  if (ended->cut) return failed(" printed too much to be a credential");
  Result<ExecStatus> status = decode_exec_credential(ended->out, config.api_version);
  if (!status) return failed(fmt::format(": {}; {}", status.error().message, said));
  return status;
}

// What the source and a run of its plugin share: a run goes on when the caller that began it has given up.
struct ExecState {
  ExecState(ExecConfig c, Clock* k) : config(std::move(c)), clock(k), finished(k->make_signal()) {}

  // Good for a request that is sent now.
  [[nodiscard]] bool usable() const {
    return current && !refused && (!current->expires || clock->now() + kExpiryMargin < *current->expires);
  }
  // Usable, but the next run should begin now so that a slow plugin is done before it is needed.
  [[nodiscard]] bool due() const {
    if (!current->expires) return false;
    const auto early = std::min<Duration>(config.time_limit, (*current->expires - obtained) / 4);
    return clock->now() + kExpiryMargin + std::chrono::ceil<std::chrono::milliseconds>(early) >= *current->expires;
  }

  [[nodiscard]] bool may_run() const { return !running && clock->monotonic() >= not_before; }
  void note_failure(Error error) {
    const Duration wait = kBackoff.after(failures++);
    not_before = clock->monotonic() + wait;
    error.message += fmt::format("; the plugin is run again after {}", format_go_duration(wait));
    last_error = std::move(error);
  }

  ExecConfig config;
  Clock* clock;
  std::unique_ptr<Signal> finished;  // A run has ended.
  std::shared_ptr<Signal> stop;      // Of the run in progress: kills the plugin.
  bool running = false;
  bool refused = false;
  std::uint64_t runs = 0;  // That have ended.
  int failures = 0;        // In a row.
  MonoTime not_before;     // No run begins earlier.
  std::optional<ExecStatus> current;
  WallTime obtained{};
  std::optional<Error> last_error;  // Of the last run, for the calls that waited for it or come before the next.
};

asio::awaitable<void> run_plugin(std::shared_ptr<ExecState> state) {
  co_await asio::post(asio::use_awaitable);
  ProcessSpec spec;
  spec.program = state->config.command;
  spec.args = state->config.args;
  spec.env = state->config.env;
  spec.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info(state->config));
  spec.time_limit = state->config.time_limit;
  spec.input = state->config.interaction.input;
  spec.messages = state->config.interaction.messages;
  spec.shares_terminal = spec.input >= 0 || spec.messages >= 0;
  spec.stop = state->stop;
  const Result<ProcessResult> ended = co_await run_process(spec, state->clock);
  Result<ExecStatus> status = judge(state->config, ended);
  if (!status) {
    state->note_failure(status.error());
    co_return;
  }
  state->last_error.reset();
  state->failures = 0;
  state->current = *std::move(status);
  state->obtained = state->clock->now();
  state->refused = false;
}

void begin_run(const std::shared_ptr<ExecState>& state, const asio::any_io_executor& executor) {
  state->running = true;
  state->stop = state->clock->make_signal();
  auto ended = [state](const std::exception_ptr& thrown) {
    if (thrown != nullptr) state->last_error = Error{Reason::cancelled, 0, "the credential plugin cannot be run"};
    state->running = false;
    ++state->runs;
    state->finished->notify();
  };
  asio::co_spawn(executor, run_plugin(state), std::move(ended));
}

asio::awaitable<Result<std::string>> exec_token(std::shared_ptr<ExecState> state, MonoTime deadline) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  if (state->usable()) {
    if (state->due() && state->may_run()) begin_run(state, executor);
    co_return state->current->token;
  }
  if (state->may_run())
    begin_run(state, executor);
  else if (!state->running)
    co_return std::unexpected(*state->last_error);
  const std::uint64_t before = state->runs;
  while (state->runs == before) {
    const bool notified = co_await state->finished->wait_until(deadline);
    if (notified || state->runs != before) continue;
    if (state->clock->monotonic() < deadline)
      co_return fail(Reason::cancelled, "cancelled while the credential plugin runs");
    co_return fail(Reason::timeout, fmt::format("credential plugin {} is still running", state->config.command));
  }
  if (state->last_error) co_return std::unexpected(*state->last_error);
  co_return state->current->token;
}

class ExecCredential final : public CredentialSource {
 public:
  ExecCredential(ExecConfig config, Clock* clock) : state_(std::make_shared<ExecState>(std::move(config), clock)) {}
  ~ExecCredential() override {
    never_throw([this] {
      if (state_->running) state_->stop->notify();
    });
  }
  ExecCredential(const ExecCredential&) = delete;
  ExecCredential& operator=(const ExecCredential&) = delete;

  asio::awaitable<Result<std::string>> token(MonoTime deadline) override { return exec_token(state_, deadline); }
  std::string client_cert_pem() const override {
    return state_->current ? state_->current->client_cert_pem : std::string();
  }
  std::string client_key_pem() const override {
    return state_->current ? state_->current->client_key_pem : std::string();
  }
  void invalidate() override { state_->refused = true; }

 private:
  std::shared_ptr<ExecState> state_;
};

}  // namespace

Result<ExecStatus> decode_exec_credential(std::string_view json, std::string_view api_version) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return fail(Reason::decode, "its output is not a JSON object");
  if (const std::string kind = text_at(root, "kind"); kind != "ExecCredential")
    return fail(Reason::decode, fmt::format("its output has kind \"{}\", expected ExecCredential", kind));
  if (text_at(root, "apiVersion") != api_version) {
    return fail(Reason::decode, fmt::format("its output has apiVersion \"{}\", the kubeconfig says {}",
                                            text_at(root, "apiVersion"), api_version));
  }
  const auto status = root.find("status");
  if (status == root.end() || !status->is_object()) return fail(Reason::decode, "its output has no status");
  ExecStatus out{text_at(*status, "token"), text_at(*status, "clientCertificateData"),
                 text_at(*status, "clientKeyData"), std::nullopt};
  if (out.client_cert_pem.empty() != out.client_key_pem.empty())
    return fail(Reason::decode, "its output must have both clientCertificateData and clientKeyData, or none");
  if (out.token.empty() && out.client_cert_pem.empty())
    return fail(Reason::decode, "its output has neither token nor clientCertificateData");
  const auto breaks_a_header = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(out.token, breaks_a_header))
    return fail(Reason::decode, "its token has white space or control characters in it");
  const std::string expires = text_at(*status, "expirationTimestamp");
  if (!expires.empty()) {
    out.expires = parse_rfc3339(expires);
    if (!out.expires)
      return fail(Reason::decode, fmt::format("its expirationTimestamp \"{}\" is not an RFC 3339 time", expires));
  }
  return out;
}

std::shared_ptr<CredentialSource> make_exec_credential(ExecConfig config, Clock* clock) {
  return std::make_shared<ExecCredential>(std::move(config), clock);
}

}  // namespace k8s
