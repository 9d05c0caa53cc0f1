// The writing verbs of ApiClient.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/object.h"

namespace k8s {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

std::string what_of(std::string_view verb, const Gvr& gvr, const ObjectKey& key, std::string_view subresource) {
  return fmt::format("{} {}{}{} {}", verb, gvr.resource, subresource.empty() ? "" : "/", subresource, to_string(key));
}

// metav1.DeleteOptions.
Json delete_options_json(const DeleteOptions& options) {
  Json out{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!options.uid.empty()) out["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) out["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_period_seconds) out["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation_policy.empty()) out["propagationPolicy"] = options.propagation_policy;
  return out;
}

asio::awaitable<Result<std::string>> refuse_write(std::string what) {
  co_return fail(Reason::cancelled, what + ": a dry run writes nothing");
}

asio::awaitable<Result<void>> without_body(asio::awaitable<Result<std::string>> write) {
  const Result<std::string> answer = co_await std::move(write);
  if (!answer) co_return std::unexpected(answer.error());
  co_return Result<void>{};
}

}  // namespace

asio::awaitable<Result<std::string>> ApiClient::send_write(Call call, std::string json, WriteOptions options) {
  if (options_.reads_only) return refuse_write(std::move(call.what));
  call.write = options.kind;
  call.deadline = options.deadline;
  call.max_retries = options.max_retries.value_or(options_.max_retries);
  call.before_send = std::move(options.before_send);
  call.request.channel = options.channel;
  call.request.body = std::move(json);
  if (call.request.content_type.empty()) call.request.content_type = "application/json";
  return body_of(std::move(call));
}

ApiClient::Call ApiClient::object_call(Method method, std::string_view verb, std::string_view word, const Gvr& gvr,
                                       const ObjectKey& key, const WriteOptions& options) const {
  const bool post = method == Method::post;
  const std::string query =
      query_text({{"fieldManager", options_.field_manager}, {"force", options.force && verb == "APPLY" ? "true" : ""}});
  Call call;
  call.verb = verb;
  call.resource = gvr.resource;
  call.what = what_of(word, gvr, key, options.subresource);
  call.request.method = method;
  call.request.path = (post ? collection_path(gvr, key.ns) : object_path(gvr, key, options.subresource)) + query;
  if (options.metadata_only)
    call.request.accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
  return call;
}

asio::awaitable<Result<std::string>> ApiClient::create(Gvr gvr, std::string ns, std::string json,
                                                       WriteOptions options) {
  Call call = object_call(Method::post, "POST", "create", gvr, ObjectKey{ns, ""}, options);
  call.what = ns.empty() ? "create " + gvr.resource : fmt::format("create {} in {}", gvr.resource, ns);
  return send_write(std::move(call), std::move(json), std::move(options));
}

asio::awaitable<Result<std::string>> ApiClient::update(Gvr gvr, ObjectKey key, std::string json, WriteOptions options) {
  Call call = object_call(Method::put, "PUT", "update", gvr, key, options);
  return send_write(std::move(call), std::move(json), std::move(options));
}

asio::awaitable<Result<std::string>> ApiClient::merge_patch(Gvr gvr, ObjectKey key, std::string json,
                                                            WriteOptions options) {
  Call call = object_call(Method::patch, "PATCH", "patch", gvr, key, options);
  call.request.content_type = "application/merge-patch+json";
  return send_write(std::move(call), std::move(json), std::move(options));
}

asio::awaitable<Result<std::string>> ApiClient::apply(Gvr gvr, ObjectKey key, std::string json, WriteOptions options) {
  Call call = object_call(Method::patch, "APPLY", "apply", gvr, key, options);
  // JSON is YAML; the JSON type is newer than some servers.
  call.request.content_type = "application/apply-patch+yaml";
  return send_write(std::move(call), std::move(json), std::move(options));
}

asio::awaitable<Result<void>> ApiClient::remove(Gvr gvr, ObjectKey key, DeleteOptions preconditions,
                                                WriteOptions options) {
  Call call;
  call.verb = "DELETE";
  call.resource = gvr.resource;
  call.what = what_of("delete", gvr, key, options.subresource);
  call.request.method = Method::del;
  call.request.path = object_path(gvr, key, options.subresource);
  std::string body = dump(delete_options_json(preconditions));
  return without_body(send_write(std::move(call), std::move(body), std::move(options)));
}

asio::awaitable<Result<void>> ApiClient::evict(ObjectKey pod, DeleteOptions preconditions, WriteOptions options) {
  const Gvr pods{"", "v1", "pods"};
  Json body{{"apiVersion", "policy/v1"}, {"kind", "Eviction"}};
  body["metadata"] = {{"name", pod.name}, {"namespace", pod.ns}};
  body["deleteOptions"] = delete_options_json(preconditions);
  Call call;
  call.verb = "POST";
  call.resource = pods.resource;
  call.what = what_of("evict", pods, pod, "");
  call.retry_429 = false;
  call.request.method = Method::post;
  call.request.path = object_path(pods, pod, "eviction");
  return without_body(send_write(std::move(call), dump(body), std::move(options)));
}

}  // namespace k8s
