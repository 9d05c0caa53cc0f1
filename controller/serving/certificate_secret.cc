// See certificate_secret.h.
#include "controller/serving/certificate_secret.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "k8sclient/auth/file_read.h"
#include "k8sclient/value/base64.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

// Without a certificate nothing is served, and the leader writes one within a second of its election. A renewed one is
// picked up by the other replicas days before the old one ends.
constexpr k8s::Duration kUntilThereIsOne = std::chrono::seconds(2);
constexpr k8s::Duration kSecretRecheck = std::chrono::minutes(1);
// Certificates last for weeks, and OpenSSL takes a millisecond to read one.
constexpr k8s::Duration kJudged = std::chrono::hours(1);

const k8s::Gvr& secrets() {
  static const k8s::Gvr kSecrets("", "v1", "secrets");
  return kSecrets;
}

struct Entry {
  const char* key;
  std::string OwnCertificate::* text;
};
// tls.crt and tls.key as in Secrets of type kubernetes.io/tls. ca.crt, what clients trust, is made of three of them.
constexpr std::array<Entry, 7> kEntries{{{"tls.crt", &OwnCertificate::certificate_pem},
                                         {"tls.key", &OwnCertificate::key_pem},
                                         {"ca-signing.crt", &OwnCertificate::ca_pem},
                                         {"ca-signing.key", &OwnCertificate::ca_key_pem},
                                         {"ca-next.crt", &OwnCertificate::next_ca_pem},
                                         {"ca-next.key", &OwnCertificate::next_ca_key_pem},
                                         {"ca-previous.crt", &OwnCertificate::previous_ca_pem}}};

OwnCertificate certificate_of(const Json& secret) {
  const Json data = object_at(secret, "data");
  OwnCertificate out;
  for (const Entry& entry : kEntries) {
    const std::optional<std::string> text = k8s::base64_decode(text_at(data, entry.key));
    if (text) out.*entry.text = *text;
  }
  return out;
}

Json data_of(const OwnCertificate& certificate) {
  Json data = Json::object();
  for (const Entry& entry : kEntries) {
    const std::string& text = certificate.*entry.text;
    data[entry.key] = text.empty() ? Json() : Json(k8s::base64_encode(text));  // null removes the key.
  }
  data["ca.crt"] = k8s::base64_encode(certificate.bundle());
  return data;
}

}  // namespace

CertificateSecret::CertificateSecret(Parts parts) : parts_(std::move(parts)) {}

asio::awaitable<void> CertificateSecret::run() {
  while (true) {
    const k8s::Result<void> looked = co_await look();
    if (looked) {
      parts_.events.worked();
    } else if (looked.error().reason != k8s::Reason::conflict) {  // Another replica was first: read what it wrote.
      parts_.events.failed(looked.error());
    }
    co_await parts_.clock->sleep_for(looked && context_ != nullptr ? kSecretRecheck : kUntilThereIsOne);
  }
}

asio::awaitable<k8s::Result<void>> CertificateSecret::look() {
  const k8s::Result<std::string> answer = co_await parts_.reader->get(secrets(), parts_.secret);
  if (!answer) {
    if (answer.error().reason != k8s::Reason::not_found) co_return std::unexpected(answer.error());
    co_return k8s::fail(
        k8s::Reason::not_found,
        fmt::format("Secret {} does not exist: the chart creates it with {}, or create it: kubectl create "
                    "secret generic {} --namespace {}",
                    to_string(parts_.secret), parts_.chart_value, parts_.secret.name, parts_.secret.ns));
  }
  const Json secret = Json::parse(*answer, nullptr, false);
  const std::string version = text_at(object_at(secret, "metadata"), "resourceVersion");
  const k8s::MonoTime now = parts_.clock->monotonic();
  if (context_ != nullptr && version == version_ && now - judged_at_ < kJudged) co_return use(held_);
  const OwnCertificate found = certificate_of(secret);
  k8s::Result<OwnCertificate> fresh = renew(found, parts_.names, parts_.clock->now(), parts_.terms);
  if (!fresh) co_return std::unexpected(fresh.error());
  if (*fresh == found) {
    version_ = version;
    judged_at_ = now;
    co_return use(*std::move(fresh));
  }
  if (!parts_.may_write()) {
    // Somebody else leads and renews it. What is there serves as long as it can be used.
    if (!found.certificate_pem.empty()) co_return use(found);
    co_return k8s::Result<void>{};
  }
  co_return co_await write(*std::move(fresh), version);
}

asio::awaitable<k8s::Result<void>> CertificateSecret::write(OwnCertificate fresh, std::string resource_version) {
  Json patch{{"metadata", {{"resourceVersion", resource_version}}}, {"data", data_of(fresh)}};
  std::string body = patch.dump();
  k8s::WriteOptions options;
  options.before_send = parts_.may_write;
  options.metadata_only = true;
  const k8s::Result<std::string> written =
      co_await parts_.writer->merge_patch(secrets(), parts_.secret, std::move(body), std::move(options));
  if (!written) co_return std::unexpected(written.error());
  co_return use(std::move(fresh));
}

k8s::Result<void> CertificateSecret::use(OwnCertificate certificate) {
  k8s::Result<std::string> authorities_of_clients = client_authorities();
  if (!authorities_of_clients) return std::unexpected(authorities_of_clients.error());
  ServingIdentity identity;
  identity.client_ca_pem = *std::move(authorities_of_clients);
  identity.certificate_pem = certificate.certificate_pem;
  identity.key_pem = certificate.key_pem;
  held_ = std::move(certificate);
  if (context_ != nullptr && identity == identity_) return {};
  auto context = make_server_context(identity);
  if (!context) return std::unexpected(context.error());
  identity_ = std::move(identity);
  context_ = *std::move(context);
  parts_.events.loaded(certificate_end(*context_));
  return {};
}

k8s::Result<std::string> CertificateSecret::client_authorities() const {
  if (parts_.client_ca_file.empty()) return std::string();
  k8s::Result<std::string> text = k8s::read_file(parts_.client_ca_file);
  if (text && text->empty()) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("file {} is empty", parts_.client_ca_file));
  }
  return text;
}

}  // namespace gso
