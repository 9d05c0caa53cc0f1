// See certificate_files.h.
#include "controller/serving/certificate_files.h"

#include <fmt/format.h>

#include <utility>

#include "k8sclient/auth/file_read.h"

namespace gso {

CertificateFiles::CertificateFiles(k8s::Clock* clock, Paths paths, Events events)
    : clock_(clock), paths_(std::move(paths)), events_(std::move(events)) {}

k8s::Result<ServingIdentity> CertificateFiles::read() const {
  ServingIdentity out;
  out.clients_only = paths_.clients_only;
  const std::pair<const std::string*, std::string*> files[] = {{&paths_.certificate, &out.certificate_pem},
                                                               {&paths_.key, &out.key_pem},
                                                               {&paths_.client_ca, &out.client_ca_pem}};
  for (const auto& [path, text] : files) {
    if (path->empty()) continue;
    k8s::Result<std::string> content = k8s::read_file(*path);
    if (!content) return std::unexpected(content.error());
    if (content->empty()) return k8s::fail(k8s::Reason::invalid, fmt::format("file {} is empty", *path));
    *text = *std::move(content);
  }
  return out;
}

k8s::Result<void> CertificateFiles::load() {
  read_at_ = clock_->monotonic();
  k8s::Result<ServingIdentity> fresh = read();
  if (!fresh) return std::unexpected(fresh.error());
  if (context_ != nullptr && *fresh == identity_) return {};
  auto context = make_server_context(*fresh);
  if (!context) {
    return k8s::fail(context.error().reason,
                     fmt::format("{} and {}: {}", paths_.certificate, paths_.key, context.error().message));
  }
  identity_ = *std::move(fresh);
  context_ = *std::move(context);
  events_.loaded(certificate_end(*context_));
  return {};
}

std::shared_ptr<boost::asio::ssl::context> CertificateFiles::current() {
  if (clock_->monotonic() - read_at_ < kPeriod) return context_;
  const k8s::Result<void> loaded = load();
  if (!loaded) events_.failed(loaded.error());
  return context_;
}

}  // namespace gso
