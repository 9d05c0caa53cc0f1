// Patches and server-side apply: from what is stored to the new state that writer.cc checks and stores.
#include <fmt/format.h>

#include "tests/sim/apiserver/decoding.h"
#include "tests/sim/apiserver/field_set.h"
#include "tests/sim/apiserver/managed_fields.h"
#include "tests/sim/apiserver/patch.h"
#include "tests/sim/apiserver/representation.h"
#include "tests/sim/apiserver/writer.h"
#include "tests/sim/apiserver/yaml.h"

namespace gso::sim {

using nlohmann::json;

Outcome<WriteResult> Writer::patch(const WriteRequest& request) {
  const Resource& resource = *request.resource;
  const ObjectPtr live = bucket(resource).find(request.key);
  if (live == nullptr) return std::unexpected(not_found(resource.noun(), request.key.name));
  json object = served_json(resource, *live);
  if (auto patched = apply_patch(request.content_type, request.body, resource.schema, resource.custom, object);
      !patched) {
    return std::unexpected(patched.error());
  }
  const auto unusable = [&](const std::string& why) {
    FieldErrors errors{invalid_value("patch", object.dump(), why)};
    ApiError error = invalid({"", "", ""}, "", errors);
    json details = {{"causes", {{{"reason", "FieldValueInvalid"}, {"message", errors[0].body()}, {"field", "patch"}}}}};
    return ApiError(422, "Invalid", error.message(), std::move(details));
  };
  if (!object.is_object()) return std::unexpected(unusable("json: cannot unmarshal into Go value"));
  if (auto problem = type_problem(resource, object)) {
    const auto colon = problem->find(": no kind");
    return std::unexpected(unusable(colon == std::string::npos ? *problem : problem->substr(colon + 2)));
  }
  if (!object.value("metadata", json()).is_object()) return std::unexpected(unusable("metadata must be an object"));
  if (auto problem = check_unknown(request, object)) return std::unexpected(unusable(*problem));
  if (auto problem = normalize_object(resource, object)) return std::unexpected(unusable(*problem));
  const std::string name = object["metadata"].value("name", "");
  if (name != request.key.name) {
    return std::unexpected(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.key.name)));
  }
  if (object["metadata"].value("namespace", "") != request.key.ns) {
    return std::unexpected(
        bad_request(fmt::format("the namespace of the object ({}) does not match the namespace on the "
                                "request ({})",
                                object["metadata"].value("namespace", ""), request.key.ns)));
  }
  return replace(request, live, std::move(object), true);
}

Outcome<WriteResult> Writer::apply(const WriteRequest& request) {
  const Resource& resource = *request.resource;
  json config = yaml_to_json(request.body);
  if (!config.is_object()) return std::unexpected(bad_request("error decoding YAML: the body is no object"));
  if (config.value("apiVersion", "") != resource.api_version() || config.value("kind", "") != resource.kind)
    return std::unexpected(bad_request("invalid object type: " + group_version_kind(config)));
  json& metadata = config["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  if (const std::string name = metadata.value("name", request.key.name); name != request.key.name) {
    return std::unexpected(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.key.name)));
  }
  if (metadata.contains("managedFields") && !metadata["managedFields"].is_null())
    return std::unexpected(bad_request("metadata.managedFields must be nil"));
  if (const std::string ns = metadata.value("namespace", request.key.ns); ns != request.key.ns) {
    return std::unexpected(
        bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (auto errors = typing_errors(resource.schema, config); !errors.empty()) {
    std::string text;
    for (const auto& e : errors) text += (errors.size() > 1 ? "\n  " : "") + e;
    return std::unexpected(ApiError(
        500, "",
        fmt::format("failed to create typed patch object ({}; {}): {}{}", request.key.ns + "/" + request.key.name,
                    group_version_kind(config), errors.size() > 1 ? "errors:" : "", text)));
  }
  metadata["name"] = request.key.name;
  if (resource.namespaced) metadata["namespace"] = request.key.ns;
  const ObjectPtr live = bucket(resource).find(request.key);
  if (live == nullptr && !request.subresource.empty())
    return std::unexpected(not_found(resource.noun(), request.key.name));
  if (live == nullptr && !metadata.value("uid", "").empty()) {
    return std::unexpected(
        conflict(resource.noun(), request.key.name,
                 fmt::format("uid mismatch: the provided object specified uid {}, and no existing object "
                             "was found",
                             metadata.value("uid", ""))));
  }
  const FieldManager manager{request.manager, request.subresource, clock_.now()};
  auto merged = apply_configuration(resource, manager, request.force,
                                    live == nullptr ? json::object() : served_json(resource, *live), config);
  if (!merged) return std::unexpected(merged.error());
  if (auto problem = normalize_object(resource, *merged)) return std::unexpected(bad_request(*problem));
  if (live == nullptr) return create_object(request, std::move(*merged), false);
  return replace(request, live, std::move(*merged), false);
}

}  // namespace gso::sim
