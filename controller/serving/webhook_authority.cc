// See webhook_authority.h.
#include "controller/serving/webhook_authority.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/base64.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

// `helm upgrade` can take a bundle away, and then nothing is judged: the configuration is read again every minute. An
// authority is published a week before it signs, but one that replaces a lost one signs at once, so what is to be
// published is compared more often.
constexpr k8s::Duration kUntilRight = std::chrono::seconds(2);
constexpr k8s::Duration kAuthorityRecheck = std::chrono::minutes(1);

const k8s::Gvr& configurations() {
  static const k8s::Gvr kConfigurations("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations");
  return kConfigurations;
}

// True if a bundle had to be changed.
bool set_bundles(Json& webhooks, const std::string& bundle) {
  bool changed = false;
  for (Json& webhook : webhooks) {
    if (!webhook.is_object() || text_at(object_at(webhook, "clientConfig"), "caBundle") == bundle) continue;
    webhook["clientConfig"]["caBundle"] = bundle;
    changed = true;
  }
  return changed;
}

}  // namespace

WebhookAuthority::WebhookAuthority(Parts parts) : parts_(std::move(parts)) {}

asio::awaitable<void> WebhookAuthority::run() {
  while (true) {
    // A standby asks nothing: the leader writes it.
    const bool leads = parts_.may_write().has_value();
    const bool due = parts_.clock->monotonic() - looked_at_ >= kAuthorityRecheck;
    if (leads && (!right_ || due || parts_.authorities() != published_)) {
      looked_at_ = parts_.clock->monotonic();
      const k8s::Result<void> looked = co_await look();
      if (looked) {
        parts_.events.worked();
      } else if (looked.error().reason != k8s::Reason::conflict) {  // Somebody else wrote it meanwhile: look again.
        parts_.events.failed(looked.error());
      }
    }
    co_await parts_.clock->sleep_for(kUntilRight);
  }
}

asio::awaitable<k8s::Result<void>> WebhookAuthority::look() {
  right_ = false;
  const std::string published = parts_.authorities();
  if (published.empty()) co_return k8s::Result<void>{};
  const k8s::ObjectKey key{"", parts_.configuration};
  const k8s::Result<std::string> answer = co_await parts_.reader->get(configurations(), key);
  if (!answer) {
    if (answer.error().reason != k8s::Reason::not_found) co_return std::unexpected(answer.error());
    co_return k8s::fail(k8s::Reason::not_found,
                        fmt::format("ValidatingWebhookConfiguration {} does not exist: the chart creates it with "
                                    "admissionWebhook.enabled",
                                    parts_.configuration));
  }
  const Json configuration = Json::parse(*answer, nullptr, false);
  Json webhooks = list_at(configuration, "webhooks");
  if (set_bundles(webhooks, k8s::base64_encode(published))) {
    // The list is replaced as a whole, so it must be the one that was read.
    const std::string version = text_at(object_at(configuration, "metadata"), "resourceVersion");
    const Json patch{{"metadata", {{"resourceVersion", version}}}, {"webhooks", std::move(webhooks)}};
    std::string body = patch.dump();
    k8s::WriteOptions options;
    options.before_send = parts_.may_write;
    options.metadata_only = true;
    const k8s::Result<std::string> written =
        co_await parts_.writer->merge_patch(configurations(), key, std::move(body), std::move(options));
    if (!written) co_return std::unexpected(written.error());
    parts_.events.written();
  }
  right_ = true;
  published_ = published;
  co_return k8s::Result<void>{};
}

}  // namespace gso
