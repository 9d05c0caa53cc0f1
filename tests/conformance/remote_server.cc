// A server behind a kubeconfig (server.h), over libcurl and on real time.
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/transport/curl_transport.h"
#include "tests/conformance/server.h"

namespace gso::conformance {
namespace {

namespace asio = boost::asio;
using nlohmann::json;

class Remote final : public Server {
 public:
  explicit Remote(RemoteServer remote) : remote_(std::move(remote)) {}

  k8s::Result<void> connect() {
    k8s::Connection connection;
    if (remote_.kubeconfig.starts_with("http://")) {
      connection.server = remote_.kubeconfig;
    } else {
      k8s::Result<k8s::Kubeconfig> config = k8s::load_kubeconfig({remote_.kubeconfig}, k8s::MissingFile::error);
      if (!config) return std::unexpected(config.error());
      k8s::Result<k8s::Connection> resolved = k8s::connection_from(*config, "", clock_.get());
      if (!resolved) return std::unexpected(resolved.error());
      connection = *std::move(resolved);
    }
    name_ = connection.server;
    connection.user_agent = "conformance";
    transport_ = k8s::make_curl_transport(io_.get_executor(), std::move(connection), clock_.get());
    if (!remote_.etcd.empty()) {
      k8s::Connection etcd;
      etcd.server = remote_.etcd;
      etcd_ = k8s::make_curl_transport(io_.get_executor(), std::move(etcd), clock_.get());
    }
    return {};
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] k8s::Transport& transport() override { return *transport_; }
  [[nodiscard]] k8s::Clock& clock() override { return *clock_; }
  [[nodiscard]] int jobs() const override { return remote_.jobs; }

  asio::awaitable<k8s::Result<void>> forget_history() override {
    if (etcd_ == nullptr) co_return k8s::fail(k8s::Reason::invalid, "history can be compacted only with --etcd");
    // etcd's JSON gateway; any range answers with the current revision ("AA==" is the key of one zero byte).
    const k8s::Result<json> range = co_await ask_etcd("/v3/kv/range", R"({"key":"AA=="})");
    if (!range) co_return std::unexpected(range.error());
    const std::string revision = range->value(json::json_pointer("/header/revision"), "");
    const k8s::Result<json> compacted = co_await ask_etcd("/v3/kv/compaction", compaction(revision));
    if (!compacted) co_return std::unexpected(compacted.error());
    co_return k8s::Result<void>{};
  }

  void run(asio::awaitable<void> work) override {
    bool done = false;
    std::exception_ptr thrown;
    asio::co_spawn(io_, std::move(work), [&done, &thrown](std::exception_ptr error) {
      done = true;
      thrown = std::move(error);
    });
    while (!done && io_.run_one() > 0) {
    }
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  static std::string compaction(const std::string& revision) {
    return fmt::format(R"({{"revision":"{}","physical":true}})", revision);
  }

  asio::awaitable<k8s::Result<json>> ask_etcd(std::string path, std::string body) {
    k8s::HttpRequest request;
    request.method = k8s::Method::post;
    request.path = std::move(path);
    request.body = std::move(body);
    request.content_type = "application/json";
    k8s::Result<k8s::HttpResponse> answer = co_await etcd_->send(std::move(request));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != 200)
      co_return k8s::fail(k8s::Reason::unavailable, fmt::format("etcd: {} {}", answer->status, answer->body));
    co_return json::parse(answer->body, nullptr, false);
  }

  RemoteServer remote_;
  std::string name_;
  asio::io_context io_{1};
  std::unique_ptr<k8s::Clock> clock_ = k8s::make_real_clock(io_.get_executor());
  std::unique_ptr<k8s::Transport> transport_;
  std::unique_ptr<k8s::Transport> etcd_;
};

}  // namespace

k8s::Result<std::unique_ptr<Server>> make_remote_server(const RemoteServer& remote) {
  auto server = std::make_unique<Remote>(remote);
  k8s::Result<void> connected = server->connect();
  if (!connected) return std::unexpected(connected.error());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace gso::conformance
