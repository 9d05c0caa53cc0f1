#include "k8sclient/auth/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "k8sclient/auth/file_read.h"

namespace k8s {

namespace {

// A key as a part of a header's name: what no name can hold is percent-encoded, and so is the percent sign.
std::string escaped(std::string_view key) {
  constexpr std::string_view kMarks = "!#$&'*+-.^_`|~";
  std::string out;
  for (const char c : key) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kMarks.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

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
    for (const std::string& value : values) out.emplace_back("Impersonate-Extra-" + escaped(key), value);
  }
  for (const auto& [name, value] : out) {
    if (!is_printable(value))
      return fail(Reason::invalid, fmt::format("the value for {} has a control character", name));
  }
  return out;
}

namespace {

namespace asio = boost::asio;

class StaticToken final : public CredentialSource {
 public:
  explicit StaticToken(std::string token) : token_(std::move(token)) {}
  asio::awaitable<Result<std::string>> token(MonoTime /*deadline*/) override { co_return token_; }
  void invalidate() override {}  // There is no other one.

 private:
  std::string token_;
};

// A token is one word; a line break at its end is the editor's.
Result<std::string> read_token(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text;
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text->find_first_not_of(kSpace);
  if (begin == std::string::npos) return fail(Reason::invalid, fmt::format("token file {} is empty", path));
  std::string token = text->substr(begin, text->find_last_not_of(kSpace) - begin + 1);
  // Anything else would end up as a second header line.
  if (token.find_first_of(kSpace) != std::string::npos) {
    return fail(Reason::invalid, fmt::format("token file {} must hold one token and nothing else", path));
  }
  return token;
}

class TokenFile final : public CredentialSource {
 public:
  TokenFile(std::string path, Clock* clock, std::string fallback)
      : path_(std::move(path)), clock_(clock), token_(std::move(fallback)) {}

  asio::awaitable<Result<std::string>> token(MonoTime /*deadline*/) override {
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

}  // namespace k8s
