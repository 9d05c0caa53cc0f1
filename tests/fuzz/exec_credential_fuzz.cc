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

// The error quotes the token: it has the token's text, and says something else of the same output with another token.
// (A token can be a part of our own sentences.)
bool quotes_token(std::string_view text, const std::string& message) {
  nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("status") || !root["status"].is_object()) return false;
  const auto token = root["status"].find("token");
  if (token == root["status"].end() || !token->is_string()) return false;
  const std::string secret = token->get<std::string>();
  if (secret.size() < 16 || !message.contains(secret)) return false;
  *token = "another-token-of-some-length";
  const auto other =
      k8s::decode_exec_credential(root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kVersion);
  return other.has_value() || other.error().message != message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const k8s::Result<k8s::ExecStatus> status = k8s::decode_exec_credential(text, kVersion);
  if (!status) {
    if (status.error().reason != k8s::Reason::decode) std::abort();
    if (quotes_token(text, status.error().message)) std::abort();
    return 0;
  }
  if (status->token.empty() && status->client_cert_pem.empty()) std::abort();
  if (status->client_cert_pem.empty() != status->client_key_pem.empty()) std::abort();
  const auto breaks_a_header = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(status->token, breaks_a_header)) std::abort();
  return 0;
}
