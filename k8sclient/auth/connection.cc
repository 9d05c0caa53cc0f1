#include "k8sclient/auth/connection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <string_view>

#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/value/encoding.h"
#include "k8sclient/value/object.h"

namespace k8s {

namespace {

bool is_printable(const std::string& value) {
  return std::ranges::none_of(value, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> impersonation_headers(const Impersonation& impersonation) {
  std::vector<std::pair<std::string, std::string>> out;
  if (impersonation.user.empty()) {
    if (impersonation.uid.empty() && impersonation.groups.empty() && impersonation.extra.empty()) return out;
    return fail(Reason::invalid, "as-uid, as-groups and as-user-extra need `as`, the name of a user");
  }
  out.emplace_back("Impersonate-User", impersonation.user);
  if (!impersonation.uid.empty()) out.emplace_back("Impersonate-Uid", impersonation.uid);
  for (const std::string& group : impersonation.groups) out.emplace_back("Impersonate-Group", group);
  for (const auto& [key, values] : impersonation.extra) {
    const std::string name = "Impersonate-Extra-" + percent_encode(key, "!#$&'*+-.^_`|~");  // What a name can hold.
    for (const std::string& value : values) out.emplace_back(name, value);
  }
  for (const auto& [name, value] : out)
    if (!is_printable(value))
      return fail(Reason::invalid, fmt::format("the value for {} has a control character", name));
  return out;
}

namespace {

class StaticToken final : public CredentialSource {
 public:
  explicit StaticToken(std::string token) : token_(std::move(token)) {}
  boost::asio::awaitable<Result<std::string>> token(MonoTime /*deadline*/) override { co_return token_; }
  void invalidate() override {}  // There is no other one.

 private:
  std::string token_;
};

// A token is one word; a line break at its end is the editor's.
Result<std::string> read_token(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text;
  std::string token(trimmed(*text));
  if (token.empty()) return fail(Reason::invalid, fmt::format("token file {} is empty", path));
  // Anything else would end up as a second header line.
  if (token.find_first_of(" \t\r\n") != std::string::npos)
    return fail(Reason::invalid, fmt::format("token file {} must hold one token and nothing else", path));
  return token;
}

class TokenFile final : public CredentialSource {
 public:
  TokenFile(std::string path, Clock* clock, std::string fallback)
      : path_(std::move(path)), clock_(clock), token_(std::move(fallback)) {}

  boost::asio::awaitable<Result<std::string>> token(MonoTime /*deadline*/) override {
    const MonoTime now = clock_->monotonic();
    if (read_at_ && now - *read_at_ < kTokenFilePeriod) co_return token_;
    Result<std::string> fresh = read_token(path_);
    if (!fresh && token_.empty()) co_return fresh;
    if (fresh) {
      token_ = *std::move(fresh);
      read_at_ = now;
    }
    co_return token_;
  }
  void invalidate() override { read_at_.reset(); }

 private:
  std::string path_;
  Clock* clock_;
  std::string token_;
  std::optional<MonoTime> read_at_;  // Unset: read at the next use.
};

}  // namespace

std::shared_ptr<CredentialSource> make_static_token(std::string token) {
  return std::make_shared<StaticToken>(std::move(token));
}

std::shared_ptr<CredentialSource> make_token_file(std::string path, Clock* clock, std::string fallback) {
  return std::make_shared<TokenFile>(std::move(path), clock, std::move(fallback));
}

Result<std::string> read_file(const std::string& path) {
  const auto problem = [&](int error) {
    return fail(error == ENOENT ? Reason::not_found : Reason::invalid,
                fmt::format("cannot read {}: {}", path, std::strerror(error)));
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return problem(errno);
  std::string out;
  char chunk[16384];
  while (true) {
    const std::size_t got = std::fread(chunk, 1, sizeof chunk, file.get());
    out.append(chunk, got);
    if (got < sizeof chunk) break;
    if (out.size() > kLargestConfigFile)
      return fail(Reason::invalid, fmt::format("cannot read {}: larger than {} bytes", path, kLargestConfigFile));
  }
  if (std::ferror(file.get()) != 0) return problem(errno);
  return out;
}

Interaction terminal_of_process() {
  Interaction out;
  if (isatty(STDIN_FILENO) == 1) out.input = STDIN_FILENO;
  if (isatty(STDERR_FILENO) == 1) out.messages = STDERR_FILENO;
  return out;
}

namespace {

constexpr const char* kHost = "KUBERNETES_SERVICE_HOST";
constexpr const char* kPort = "KUBERNETES_SERVICE_PORT";
constexpr const char* kFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

bool runs_in_cluster(const Environment& environment) {
  return !environment(kHost).value_or("").empty() && !environment(kPort).value_or("").empty();
}

Result<Connection> in_cluster_connection(const Environment& environment, Clock* clock, const std::string& root) {
  if (!runs_in_cluster(environment))
    return fail(Reason::invalid, fmt::format("not running in a pod: {} and {} are not both set", kHost, kPort));
  const std::string folder = root + kFolder;
  const std::string host = *environment(kHost);
  const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  Connection connection;
  connection.identity = "the pod's ServiceAccount";
  connection.server = fmt::format("https://{}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", *environment(kPort));
  Result<std::string> ca = read_file(folder + "/ca.crt");
  if (!ca) return fail(Reason::invalid, "in-cluster configuration: " + ca.error().message);
  connection.ca_pem = *std::move(ca);
  connection.ca_file = folder + "/ca.crt";
  const Result<std::string> token = read_file(folder + "/token");
  if (!token) return fail(Reason::invalid, "in-cluster configuration: " + token.error().message);
  const Result<std::string> ns = read_file(folder + "/namespace");
  if (ns && !trimmed(*ns).empty()) connection.namespace_name = trimmed(*ns);
  connection.credentials = make_token_file(folder + "/token", clock);
  return connection;
}

namespace {

std::vector<std::string> split_paths(std::string_view list) {
  std::vector<std::string> out;
  for (const auto path : std::views::split(list, ':')) out.emplace_back(path.begin(), path.end());
  std::erase(out, "");
  return out;
}

Result<Connection> from_files(std::vector<std::string> files, MissingFile missing, const ConnectionRequest& request,
                              Clock* clock) {
  const Result<Kubeconfig> config = load_kubeconfig(std::move(files), missing);
  if (!config) return std::unexpected(config.error());
  return connection_from(*config, request.context, clock, request.interaction);
}

}  // namespace

Result<Connection> load_connection(const ConnectionRequest& request, const Environment& environment, Clock* clock) {
  if (!request.kubeconfig.empty()) return from_files({request.kubeconfig}, MissingFile::error, request, clock);
  std::vector<std::string> listed = split_paths(environment("KUBECONFIG").value_or(""));
  if (!listed.empty()) return from_files(std::move(listed), MissingFile::skip, request, clock);
  if (request.context.empty() && runs_in_cluster(environment)) return in_cluster_connection(environment, clock);
  const std::string home = environment("HOME").value_or("");
  if (home.empty()) {
    return fail(Reason::invalid,
                "no cluster is configured: give --kubeconfig, set KUBECONFIG, or run in a pod (HOME is not set "
                "either)");
  }
  Result<Connection> connection = from_files({home + "/.kube/config"}, MissingFile::error, request, clock);
  if (connection) return connection;
  Error error = connection.error();
  error.message += " (tried because neither --kubeconfig nor KUBECONFIG is given and this is not a pod)";
  return std::unexpected(std::move(error));
}

}  // namespace k8s
