// See tls_files.h.
#include "k8sclient/transport/tls_files.h"

#include <utility>

#include "k8sclient/auth/file_read.h"

namespace k8s {
namespace {

void refresh(const std::string& path, std::string& text) {
  if (path.empty()) return;
  Result<std::string> fresh = read_file(path);
  if (fresh && !fresh->empty()) text = *std::move(fresh);
}

}  // namespace

TlsFiles::TlsFiles(const Connection& connection, MonoTime now)
    : ca_file_(connection.ca_file),
      client_cert_file_(connection.client_cert_file),
      client_key_file_(connection.client_key_file),
      texts_(std::make_shared<const TlsTexts>(
          TlsTexts{connection.ca_pem, connection.client_cert_pem, connection.client_key_pem})),
      read_at_(now) {}

std::shared_ptr<const TlsTexts> TlsFiles::current(MonoTime now) {
  if (now - read_at_ >= kTlsFilePeriod) reread(now);
  return texts_;
}

void TlsFiles::reread(MonoTime now) {
  read_at_ = now;
  TlsTexts fresh = *texts_;
  refresh(ca_file_, fresh.ca_pem);
  refresh(client_cert_file_, fresh.client_cert_pem);
  refresh(client_key_file_, fresh.client_key_pem);
  if (fresh != *texts_) texts_ = std::make_shared<const TlsTexts>(std::move(fresh));
}

}  // namespace k8s
