// Any bytes as what a credential plugin printed: no crash, a credential is complete and can be sent in a header, and an
// error does not quote the secret.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "k8sclient/auth/exec_credential.h"

namespace {

constexpr std::string_view kVersion = "client.authentication.k8s.io/v1";

// The token, where it is long enough to be recognised and does not stand elsewhere in the output as well.
std::string secret_of(std::string_view text) {
  const nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("status") || !root["status"].is_object()) return {};
  const auto token = root["status"].find("token");
  if (token == root["status"].end() || !token->is_string()) return {};
  const std::string secret = token->get<std::string>();
  const std::size_t first = text.find(secret);
  const bool once = first != std::string_view::npos && text.find(secret, first + 1) == std::string_view::npos;
  const bool secret_only = once && !kVersion.contains(secret);  // Messages name the version.
  return secret_only && secret.size() >= 16 ? secret : std::string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const k8s::Result<k8s::ExecStatus> status = k8s::decode_exec_credential(text, kVersion);
  if (!status) {
    const std::string secret = secret_of(text);
    if (status.error().reason != k8s::Reason::decode) std::abort();
    if (!secret.empty() && status.error().message.contains(secret)) std::abort();
    return 0;
  }
  if (status->token.empty() && status->client_cert_pem.empty()) std::abort();
  if (status->client_cert_pem.empty() != status->client_key_pem.empty()) std::abort();
  const auto breaks_a_header = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(status->token, breaks_a_header)) std::abort();
  return 0;
}
