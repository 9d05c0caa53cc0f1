// Routing: from a request to a reader or writer, and from their outcome to an answer.
#include "tests/sim/apiserver/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/collector.h"
#include "tests/sim/apiserver/crd.h"
#include "tests/sim/apiserver/discovery.h"
#include "tests/sim/apiserver/managed_fields.h"
#include "tests/sim/apiserver/options.h"
#include "tests/sim/apiserver/protobuf.h"
#include "tests/sim/apiserver/reader.h"
#include "tests/sim/apiserver/writer.h"

namespace gso::sim {
namespace {

using nlohmann::json;

// The finalizer of every definition, for the deletion of its objects.
constexpr const char* kCleanup = "customresourcecleanup.apiextensions.k8s.io";

constexpr std::size_t kMostRequestBytes = 3 * 1024 * 1024;

k8s::HttpResponse text_response(int status, std::string body) {
  k8s::HttpResponse response = json_response(status, std::move(body));
  response.headers[0].second = "text/plain; charset=utf-8";
  return response;
}

k8s::HttpResponse version_response() {
  const json version = {{"major", "1"},    {"minor", "36"},      {"gitVersion", "v1.36.3"},
                        {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", "1970-01-01T00:00:00Z"},
                        {"goVersion", ""}, {"compiler", ""},     {"platform", "linux/amd64"}};
  return json_response(200, version.dump() + "\n");
}

std::string manager_of(const RequestInfo& info, const RequestContext& context) {
  const std::string given = info.option("fieldManager");
  return given.empty() ? context.user_agent.substr(0, context.user_agent.find('/')) : given;
}

}  // namespace

class ApiServer::Impl {
 public:
  Impl(boost::asio::any_io_executor executor, k8s::Clock& clock, const ApiServerOptions& options)
      : clock_(clock),
        storage_(clock, options.limits),
        hub_(storage_, clock),
        writer_(registry_, storage_, clock, {options.seed, options.taint_new_nodes}),
        reader_(storage_, hub_, clock),
        collector_(executor, clock, registry_, storage_, writer_,
                   {options.default_service_accounts, options.collector_delay}, [this] { audit_actor(); }) {
    writer_.set_crd_listener([this](const json* before, const json* after) { on_crd(before, after); });
    for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
      writer_.seed_object(registry_.find("", "v1", "namespaces"),
                          {{"apiVersion", "v1"},
                           {"kind", "Namespace"},
                           {"metadata", {{"name", name}, {"labels", {{"kubernetes.io/metadata.name", name}}}}},
                           {"spec", {{"finalizers", {"kubernetes"}}}},
                           {"status", {{"phase", "Active"}}}});
    }
    (void)writer_.take_changes();
  }

  k8s::HttpResponse handle(const k8s::HttpRequest& request, const RequestContext& context) {
    try {
      return route(request, context);
    } catch (const json::exception& e) {  // A value of an unexpected type in a hostile body.
      return bad_request(fmt::format("the request cannot be handled: {}", e.what())).response();
    }
  }

  WatchAnswer watch(const k8s::HttpRequest& request, const RequestContext& context) {
    const RequestInfo info = parse_request(request);
    auto resource = find_resource(info);
    if (!resource) return resource.error();
    auto format = choose_format(request.accept, info.option("includeObject"));
    if (!format) return format.error().response();
    auto stream = reader_.watch(*resource, info, *format, context);
    if (!stream) return stream.error().response();
    return *stream;
  }

  std::optional<json> get(const k8s::Gvr& gvr, const k8s::ObjectKey& key) {
    const ResourcePtr resource = registry_.find(gvr.group, gvr.version, gvr.resource);
    if (resource == nullptr) return std::nullopt;
    const ObjectPtr object = storage_.bucket(resource->bucket).find(key);
    if (object == nullptr) return std::nullopt;
    return served_json(*resource, *object);
  }

  std::vector<json> list(const k8s::Gvr& gvr, const std::string& ns) {
    std::vector<json> all;
    const ResourcePtr resource = registry_.find(gvr.group, gvr.version, gvr.resource);
    if (resource == nullptr) return all;
    const auto [first, last] = Bucket::range(storage_.bucket(resource->bucket).objects(), ns);
    for (auto it = first; it != last; ++it) all.push_back(served_json(*resource, *it->second));
    return all;
  }

  std::vector<std::shared_ptr<const json>> view(const k8s::Gvr& gvr, const std::string& ns) {
    std::vector<std::shared_ptr<const json>> all;
    const ResourcePtr resource = registry_.find(gvr.group, gvr.version, gvr.resource);
    if (resource == nullptr) return all;
    const auto [first, last] = Bucket::range(storage_.bucket(resource->bucket).objects(), ns);
    for (auto it = first; it != last; ++it) all.push_back(it->second->parsed());
    return all;
  }

  k8s::Clock& clock_;
  Registry registry_;
  Storage storage_;
  WatchHub hub_;
  std::vector<AuditListener> listeners_;

 private:
  using ResourceOrAnswer = std::expected<ResourcePtr, k8s::HttpResponse>;

  // The resource of a path, or why there is none or not with this verb.
  ResourceOrAnswer find_resource(const RequestInfo& info) const {
    const ResourcePtr resource = registry_.find(info.group, info.version, info.plural);
    if (resource == nullptr) {
      if (registry_.has_group_version(info.group, info.version)) return std::unexpected(unknown_resource().response());
      return std::unexpected(text_response(404, "404 page not found\n"));
    }
    const bool named = !info.key.name.empty();
    if (!resource->namespaced && !info.key.ns.empty()) return std::unexpected(unknown_resource().response());
    if (resource->namespaced && info.key.ns.empty() && named) return std::unexpected(unknown_resource().response());
    if (!info.subresource.empty()) {
      const auto& subs = resource->subresources;
      const bool known = (info.subresource == "status" && resource->has_status) ||
                         std::find(subs.begin(), subs.end(), info.subresource) != subs.end();
      if (!known) return std::unexpected(unknown_resource().response());
    }
    if (!allowed(*resource, info, named)) return std::unexpected(method_not_allowed().response());
    return resource;
  }

  static bool allowed(const Resource& resource, const RequestInfo& info, bool named) {
    const bool all_namespaces = resource.namespaced && info.key.ns.empty();
    const bool posts = info.subresource == "eviction" || info.subresource == "binding";
    if (info.verb == "create") return posts || (!named && !all_namespaces);
    if (posts) return false;
    if (info.subresource == "finalize") return info.verb == "update";
    if (resource.create_only) return false;
    if (info.verb == "update" || info.verb == "patch") return named;
    if (info.verb == "deletecollection") return !all_namespaces && resource.plural != "namespaces";
    return info.verb != "delete" || info.subresource.empty();
  }

  k8s::HttpResponse route(const k8s::HttpRequest& request, const RequestContext& context) {
    if (request.body.size() > kMostRequestBytes) {
      return ApiError(413, "RequestEntityTooLarge",
                      fmt::format("Request entity too large: limit is {}", kMostRequestBytes))
          .response();
    }
    const RequestInfo info = parse_request(request);
    if (info.kind == RequestInfo::Path::other) return other_path(request, info);
    auto resource = find_resource(info);
    if (!resource) return resource.error();
    if (is_protobuf(request.content_type) && !(*resource)->custom) return route_protobuf(**resource, request, context);
    if ((*resource)->create_only) return review(**resource, request, manager_of(info, context));
    auto format = choose_format(request.accept, info.option("includeObject"));
    if (!format) return format.error().response();
    k8s::HttpResponse response = answer(*resource, request, info, context, *format);
    if (format->yaml) response.headers[0].second = "application/yaml";
    return response;
  }

  // The same request with its body in JSON.
  k8s::HttpResponse route_protobuf(const Resource& resource, k8s::HttpRequest request, const RequestContext& context) {
    const auto object = decode_protobuf(request.body, resource.schema);
    if (!object) return bad_request(object.error()).response();
    request.body = object->dump(-1, ' ', false, json::error_handler_t::replace);
    request.content_type = "application/json";
    return route(request, context);
  }

  k8s::HttpResponse answer(const ResourcePtr& resource, const k8s::HttpRequest& request, const RequestInfo& info,
                           const RequestContext& context, const Format& format) {
    if (info.verb == "get") {
      auto object = reader_.get(*resource, info, context);
      if (!object) return object.error().response();
      return json_response(200, render_object(*resource, **object, format, clock_.now()) + "\n");
    }
    if (info.verb == "list") {
      auto page = reader_.list(*resource, info, context);
      if (!page) return page.error().response();
      return json_response(200, render_list(*resource, *page, format, clock_.now()) + "\n");
    }
    return write(resource, request, info, context, format);
  }

  k8s::HttpResponse other_path(const k8s::HttpRequest& request, const RequestInfo& info) {
    const std::string first = info.segments.empty() ? "" : info.segments[0];
    if (first == "healthz" || first == "livez" || first == "readyz") return text_response(200, "ok");
    if (info.path == "/version") return version_response();
    const std::pair document(info.path, request.accept);
    if (const auto known = documents_.find(document); known != documents_.end()) return known->second;
    auto answer = discover(registry_, info, request.accept);
    if (!answer) answer = open_api(registry_, info, request.accept);
    if (!answer) return text_response(404, "404 page not found\n");
    return documents_.emplace(document, *std::move(answer)).first->second;
  }

  // Everybody is allowed everything; a client that is not is a fault (faults.h).
  k8s::HttpResponse review(const Resource& resource, const k8s::HttpRequest& request,
                           const std::string& manager) const {
    json object = json::parse(request.body, nullptr, false);
    if (!object.is_object()) return bad_request("the object provided is unrecognized").response();
    object["apiVersion"] = resource.api_version();
    object["kind"] = resource.kind;
    (void)normalize_object(resource, object);
    track_update(resource, {manager, "", clock_.now()}, json::object(), object);
    object["metadata"].erase("creationTimestamp");
    object["status"] = {{"allowed", true}};
    return json_response(201, object.dump() + "\n");
  }

  k8s::HttpResponse write(const ResourcePtr& resource, const k8s::HttpRequest& request, const RequestInfo& info,
                          const RequestContext& context, const Format& format) {
    (void)writer_.take_changes();
    (void)writer_.take_warnings();
    AuditEntry entry;
    entry.time = clock_.now();
    entry.user = context.user;
    entry.user_agent = context.user_agent;
    entry.verb = is_apply(request) ? "apply" : info.verb;
    entry.gvr = resource->gvr();
    entry.key = info.key;
    entry.subresource = info.subresource;
    entry.content_type = request.content_type;
    entry.body = request.body;
    auto outcome = dispatch(resource, request, info, context, entry);
    k8s::HttpResponse response = outcome ? written(*resource, *outcome, format) : outcome.error().response();
    for (const std::string& warning : writer_.take_warnings())
      if (outcome) response.headers.emplace_back("warning", "299 - " + json(warning).dump());
    entry.status = response.status;
    emit(std::move(entry));
    return response;
  }

  Outcome<WriteResult> dispatch(const ResourcePtr& resource, const k8s::HttpRequest& request, const RequestInfo& info,
                                const RequestContext& context, AuditEntry& entry) {
    if (info.verb == "delete" || info.verb == "deletecollection") {
      auto options = delete_options(request, info);
      if (!options) return std::unexpected(options.error());
      entry.dry_run = options->dry_run;
      return info.verb == "delete" ? writer_.remove(resource, info.key, *options)
                                   : delete_all(resource, info, *options);
    }
    WriteRequest write{resource,    info.key, info.subresource, manager_of(info, context), request.content_type,
                       request.body};
    const std::string dry_run = info.option("dryRun");
    if (auto errors = write_option_errors(request, info); !errors.empty()) {
      const char* kind = info.verb == "create"   ? "CreateOptions"
                         : info.verb == "update" ? "UpdateOptions"
                                                 : "PatchOptions";
      return std::unexpected(invalid({"meta.k8s.io", "", kind}, "", errors));
    }
    const std::string validation = info.option("fieldValidation");
    write.unknown = validation == "Ignore"   ? WriteRequest::Unknown::ignore
                    : validation == "Strict" ? WriteRequest::Unknown::refuse
                                             : WriteRequest::Unknown::warn;
    write.dry_run = entry.dry_run = !dry_run.empty();
    write.force = info.flag("force");
    if (write.subresource == "finalize") write.subresource.clear();
    if (info.subresource == "eviction") return writer_.evict(write);
    if (info.subresource == "binding") return writer_.bind(write);
    if (info.verb == "create") {
      auto created = writer_.create(write);
      if (created && created->object != nullptr) entry.key = created->object->key();
      return created;
    }
    if (info.verb == "update") return writer_.update(write);
    return is_apply(request) ? writer_.apply(write) : writer_.patch(write);
  }

  Outcome<WriteResult> delete_all(const ResourcePtr& resource, const RequestInfo& info, const DeleteOptions& options) {
    auto selection = parse_selection(*resource, info);
    if (!selection) return std::unexpected(selection.error());
    std::vector<ObjectPtr> chosen;
    const auto [first, last] = Bucket::range(storage_.bucket(resource->bucket).objects(), info.key.ns);
    for (auto it = first; it != last; ++it)
      if (selection->matches(*it->second)) chosen.push_back(it->second);
    json items = json::array();
    for (const auto& object : chosen) {
      items.push_back(served_json(*resource, *object));
      if (!resource->custom) {  // As in lists.
        items.back().erase("kind");
        items.back().erase("apiVersion");
      }
      (void)writer_.remove(resource, object->key(), options);
    }
    json metadata = {{"resourceVersion", std::to_string(storage_.revision())}};
    if (resource->custom) metadata["continue"] = "";
    return WriteResult{200,
                       nullptr,
                       {{"kind", resource->list_kind},
                        {"apiVersion", resource->api_version()},
                        {"metadata", std::move(metadata)},
                        {"items", std::move(items)}}};
  }

  k8s::HttpResponse written(const Resource& resource, const WriteResult& result, const Format& format) const {
    if (result.object == nullptr) return json_response(result.status, result.other.dump() + "\n");
    return json_response(result.status, render_object(resource, *result.object, format, clock_.now()) + "\n");
  }

  // One entry for a request that changed at most one object; else one for each object.
  void emit(AuditEntry entry) {
    std::vector<Change> changes = writer_.take_changes();
    if (listeners_.empty()) return;
    if (changes.empty()) {
      for (const auto& listener : listeners_) listener(entry);
      return;
    }
    for (const Change& change : changes) {
      AuditEntry one = entry;
      const Object& any = change.after != nullptr ? *change.after : *change.before;
      one.gvr = change.resource->gvr();
      one.key = any.key();
      if (change.before != nullptr) one.before = change.before->parsed();
      if (change.after != nullptr) one.after = change.after->parsed();
      for (const auto& listener : listeners_) listener(one);
    }
  }

  void audit_actor() {
    AuditEntry entry;
    entry.time = clock_.now();
    entry.user = "system:kube-controller-manager";
    entry.verb = "collect";
    if (writer_.has_changes()) emit(std::move(entry));
  }

  // Serves, changes or stops serving what a definition defines.
  void on_crd(const json* before, const json* after) {
    const json& crd = after != nullptr ? *after : *before;
    const std::string name = crd["metadata"].value("name", "");
    documents_.clear();
    registry_.remove_crd(name);
    if (after == nullptr) {
      const std::string bucket = crd["spec"]["names"].value("plural", "") + "." + crd["spec"].value("group", "");
      hub_.close_bucket(bucket);
      storage_.drop_bucket(bucket);
      return;
    }
    for (auto& resource : resources_of_crd(crd)) registry_.add(std::move(resource));
    if (crd["metadata"].contains("deletionTimestamp")) {  // Its objects go with it, at once.
      const ResourcePtr definitions = registry_.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
      const ObjectPtr stored = storage_.bucket(definitions->bucket).find({"", name});
      if (stored->parsed()->at("metadata").value("finalizers", json::array()) == json::array({kCleanup}))
        writer_.erase_object(definitions, stored);
      return;
    }
    if (crd.value("status", json::object()).value("conditions", json()).is_array()) return;
    json established = crd;
    established["metadata"]["finalizers"].push_back(kCleanup);
    established["status"] = established_status(crd, clock_.now());
    const ResourcePtr definitions = registry_.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    writer_.replace_object(definitions, storage_.bucket(definitions->bucket).find({"", name}), std::move(established));
  }

  Writer writer_;
  Reader reader_;
  Collector collector_;
  std::map<std::pair<std::string, std::string>, k8s::HttpResponse> documents_;  // Discovery, by path and form.
};

ApiServer::ApiServer(boost::asio::any_io_executor executor, k8s::Clock& clock, ApiServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(executor), clock, options)) {}
ApiServer::~ApiServer() = default;

k8s::HttpResponse ApiServer::handle(const k8s::HttpRequest& request, const RequestContext& context) {
  return impl_->handle(request, context);
}
ApiServer::WatchAnswer ApiServer::watch(const k8s::HttpRequest& request, const RequestContext& context) {
  return impl_->watch(request, context);
}
bool ApiServer::is_watch(const k8s::HttpRequest& request) {
  return parse_request(request).verb == "watch";
}
void ApiServer::add_audit_listener(AuditListener listener) {
  impl_->listeners_.push_back(std::move(listener));
}
std::optional<json> ApiServer::get(const k8s::Gvr& gvr, const k8s::ObjectKey& key) const {
  return impl_->get(gvr, key);
}
std::vector<json> ApiServer::list(const k8s::Gvr& gvr, const std::string& ns) const {
  return impl_->list(gvr, ns);
}
std::vector<std::shared_ptr<const json>> ApiServer::view(const k8s::Gvr& gvr, const std::string& ns) const {
  return impl_->view(gvr, ns);
}
std::uint64_t ApiServer::revision() const {
  return impl_->storage_.revision();
}
void ApiServer::compact(const std::string& bucket) {
  impl_->storage_.compact(bucket);
}
void ApiServer::forget_last(k8s::Duration age) {
  impl_->storage_.forget_last(impl_->clock_.monotonic() - age);
  impl_->hub_.close_all();
}
std::size_t ApiServer::open_watches() const {
  return impl_->hub_.open_watches();
}
k8s::Clock& ApiServer::clock() {
  return impl_->clock_;
}

}  // namespace gso::sim
