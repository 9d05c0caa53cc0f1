// Reading and checking of options.
#include "tests/sim/apiserver/options.h"

#include <nlohmann/json.hpp>

namespace gso::sim {

using nlohmann::json;

bool is_apply(const k8s::HttpRequest& request) {
  return request.content_type.starts_with("application/apply-patch");
}

FieldErrors write_option_errors(const k8s::HttpRequest& request, const RequestInfo& info) {
  FieldErrors errors;
  const std::string manager = info.option("fieldManager");
  if (is_apply(request) && manager.empty())
    errors.push_back(required_value("fieldManager", "is required for apply patch"));
  if (info.verb == "patch" && !is_apply(request) && !info.option("force").empty())
    errors.push_back(forbidden_value("force", "may not be specified for non-apply patch"));
  if (manager.size() > 128) errors.push_back(too_long("fieldManager", 128));
  if (const std::string dry_run = info.option("dryRun"); !dry_run.empty() && dry_run != "All")
    errors.push_back(not_supported("dryRun", json::array({dry_run}), {"All"}));
  const std::string validation = info.option("fieldValidation");
  if (!validation.empty() && validation != "Ignore" && validation != "Warn" && validation != "Strict")
    errors.push_back(not_supported("fieldValidation", validation, {"", "Ignore", "Strict", "Warn"}));
  return errors;
}

Outcome<DeleteOptions> delete_options(const k8s::HttpRequest& request, const RequestInfo& info) {
  DeleteOptions options;
  json body = request.body.empty() ? json::object() : json::parse(request.body, nullptr, false);
  if (!body.is_object()) return std::unexpected(bad_request("couldn't get version/kind; json parse error"));
  if (const std::string grace = info.option("gracePeriodSeconds"); !grace.empty())
    options.grace_seconds = std::atoll(grace.c_str());
  if (auto it = body.find("gracePeriodSeconds"); it != body.end() && it->is_number_integer())
    options.grace_seconds = it->get<std::int64_t>();
  options.propagation = body.value("propagationPolicy", info.option("propagationPolicy"));
  if (body.value("orphanDependents", false)) options.propagation = "Orphan";
  if (auto it = body.find("preconditions"); it != body.end() && it->is_object()) {
    options.uid = it->value("uid", "");
    options.resource_version = it->value("resourceVersion", "");
  }
  const json dry = body.value("dryRun", json::array());
  options.dry_run = !info.option("dryRun").empty() || (dry.is_array() && !dry.empty());
  if (!options.propagation.empty() && options.propagation != "Foreground" && options.propagation != "Background" &&
      options.propagation != "Orphan") {
    return std::unexpected(invalid(
        {"meta.k8s.io", "", "DeleteOptions"}, "",
        {not_supported("propagationPolicy", options.propagation, {"Foreground", "Background", "Orphan", "nil"})}));
  }
  return options;
}

}  // namespace gso::sim
