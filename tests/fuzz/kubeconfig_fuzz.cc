// Any bytes as a kubeconfig, and each of its contexts as a connection: no crash, and an error that names the file. No
// file is read and no plugin is run.
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/clock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static boost::asio::io_context io;
  static const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  k8s::Result<k8s::Kubeconfig> config = k8s::parse_kubeconfig(text, "/home/me/.kube/config");
  if (!config) {
    if (config.error().reason != k8s::Reason::invalid || !config.error().message.contains("/home/me/.kube/config"))
      std::abort();
    return 0;
  }
  for (auto& [name, cluster] : config->clusters) cluster.certificate_authority.clear();
  for (auto& [name, user] : config->users) {
    user.client_certificate.clear();
    user.client_key.clear();
    user.token_file.clear();
  }
  static_cast<void>(k8s::connection_from(*config, "", clock.get()));
  for (const auto& [name, context] : config->contexts) {
    const k8s::Result<k8s::Connection> connection = k8s::connection_from(*config, name, clock.get());
    if (connection && !connection->server.starts_with("http")) std::abort();
    if (!connection && connection.error().message.empty()) std::abort();
  }
  return 0;
}
