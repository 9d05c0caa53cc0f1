// Scalars and metadata of json_fields.h.
#include "reconcilers/model/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"

namespace gso::json {

using simdjson::ondemand::json_type;

namespace {

// The path of a row without its "[]", and without a '.' at its end.
std::string spelt(std::string_view path) {
  if (path.ends_with('.')) path.remove_suffix(1);
  std::string out(path);
  for (auto at = out.find("[]"); at != std::string::npos; at = out.find("[]")) out.erase(at, 2);
  return out;
}

}  // namespace

bool Fields::fail(std::string_view field, std::string_view expected) {
  if (!failure_.empty()) return false;
  wrong_ = {"FieldValueInvalid", spelt(field), std::string(expected)};
  failure_ = fmt::format("{} must be {}", wrong_.field, expected);
  return false;
}

bool Fields::invalid_json(std::string_view field, simdjson::error_code code) {
  if (failure_.empty()) {
    failure_ = field.empty() ? fmt::format("invalid JSON: {}", simdjson::error_message(code))
                             : fmt::format("invalid JSON in {}: {}", spelt(field), simdjson::error_message(code));
  }
  return false;
}

bool Fields::open(Value& value, std::string_view field, json_type wanted, std::string_view expected) {
  if (!ok()) return false;
  json_type type{};
  if (auto code = value.type().get(type); code != simdjson::SUCCESS) return invalid_json(field, code);
  if (type == json_type::null) {
    bool is_null = false;
    if (auto code = value.is_null().get(is_null); code != simdjson::SUCCESS) invalid_json(field, code);
    return false;
  }
  if (type != wanted) return fail(field, expected);
  return true;
}

bool Fields::view(Value value, std::string_view field, std::string_view& out) {
  if (!open(value, field, json_type::string, "a string")) return ok();
  if (auto code = value.get_string().get(out); code != simdjson::SUCCESS) return invalid_json(field, code);
  return true;
}

// A null leaves `read` without an address.
bool Fields::text(Value value, std::string_view field, std::string& out) {
  std::string_view read;
  if (!view(value, field, read)) return false;
  if (read.data() != nullptr) out.assign(read);
  return true;
}

bool Fields::text(Value value, std::string_view field, k8s::Interned& out) {
  std::string_view read;
  if (!view(value, field, read)) return false;
  if (read.data() != nullptr) out = k8s::Interned(read);
  return true;
}

bool Fields::name(Value value, std::string_view field, k8s::Interned& out) {
  std::string_view read;
  if (!view(value, field, read)) return false;
  if (!read.empty()) out = k8s::Interned(first_bytes(read, kMostName));
  return true;
}

bool Fields::number(Value value, std::string_view field, std::int64_t& out) {
  if (!open(value, field, json_type::number, "a whole number")) return ok();
  if (value.get_int64().get(out) != simdjson::SUCCESS) return fail(field, "a whole number");
  return true;
}

bool Fields::number(Value value, std::string_view field, std::int32_t& out) {
  std::int64_t wide = out;
  if (!number(value, field, wide)) return false;
  if (!std::in_range<std::int32_t>(wide)) return fail(field, "a whole number of 32 bits");
  out = static_cast<std::int32_t>(wide);
  return true;
}

bool Fields::flag(Value value, std::string_view field, bool& out) {
  if (!open(value, field, json_type::boolean, "true or false")) return ok();
  if (auto code = value.get_bool().get(out); code != simdjson::SUCCESS) return invalid_json(field, code);
  return true;
}

bool Fields::is_null(Value& value) {
  json_type type{};
  return value.type().get(type) == simdjson::SUCCESS && type == json_type::null;
}

bool Fields::time(Value value, std::string_view field, std::optional<k8s::WallTime>& out) {
  std::string_view read;
  if (!view(value, field, read)) return false;
  if (read.empty()) return true;
  out = k8s::parse_rfc3339(read);
  return out ? true : fail(field, "a time such as 2026-01-02T03:04:05Z");
}

bool Fields::time(Value value, std::string_view field, k8s::WallTime& out) {
  std::optional<k8s::WallTime> read;
  if (!time(value, field, read)) return false;
  out = read.value_or(out);
  return true;
}

namespace {

constexpr std::int64_t kMostOf64Bits = std::numeric_limits<std::int64_t>::max();

// Rounded up, as the scheduler counts. kMostOf64Bits, or its negative, stands for what 64 bits cannot hold.
std::optional<std::int64_t> whole_quantity(std::string_view text, std::int64_t parts) {
  const auto whole = parts == 1 ? whole_number(text) : std::nullopt;
  if (whole) return whole;
  const auto value = parse_quantity(text);
  if (!value) return std::nullopt;
  const long double rounded = std::ceil(*value * static_cast<long double>(parts));
  if (!(std::abs(rounded) < static_cast<long double>(kMostOf64Bits)))
    return rounded > 0 ? kMostOf64Bits : -kMostOf64Bits;
  return static_cast<std::int64_t>(rounded);
}

}  // namespace

bool Fields::quantity(Value value, std::string_view field, std::int64_t& out, std::int64_t parts, Beyond beyond) {
  json_type type{};
  if (!ok()) return false;
  if (auto code = value.type().get(type); code != simdjson::SUCCESS) return invalid_json(field, code);
  if (type == json_type::number && parts == 1) return number(value, field, out);
  std::string_view read;
  if (type == json_type::number) {
    read = value.raw_json_token();
    read = read.substr(0, read.find_last_not_of(" \t\r\n") + 1);
  } else if (!view(value, field, read)) {
    return false;
  }
  return type == json_type::null || quantity(read, field, out, parts, beyond);
}

bool Fields::quantity(std::string_view text, std::string_view field, std::int64_t& out, std::int64_t parts,
                      Beyond beyond) {
  const auto parsed = whole_quantity(text, parts);
  if (!parsed || (beyond == Beyond::fails && std::abs(*parsed) == kMostOf64Bits))
    return fail(field, "a quantity such as 8 or 2k");
  out = *parsed;
  return true;
}

bool Fields::string_map(Value value, std::string_view field, std::map<std::string, std::string>& out) {
  return object(value, field,
                [&](std::string_view key, Value inner) { return text(inner, field, out[std::string(key)]); });
}

namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

bool read_strings(Fields& fields, Value value, std::string_view field, bool (*keep)(std::string_view), std::size_t most,
                  std::size_t longest, k8s::StringMap& out) {
  const bool read = fields.object(value, field, [&](std::string_view key, Value inner) {
    if (keep != nullptr && !keep(key)) return true;
    if (out.size() >= most) return true;
    // The key's bytes live in the decoder's string buffer, which only grows while one object is read.
    std::string_view text;
    if (!fields.view(inner, field, text)) return false;
    out.set(key, most == kAll ? text : first_bytes(text, longest));
    return true;
  });
  out.shrink_to_fit();
  return read;
}

constexpr Row<k8s::OwnerReference> kOwner[] = {
    row_by<read_name, &k8s::OwnerReference::kind>("metadata.ownerReferences.kind"),
    row_by<read_name, &k8s::OwnerReference::name>("metadata.ownerReferences.name"),
    row_by<read_name, &k8s::OwnerReference::uid>("metadata.ownerReferences.uid"),
    row<&k8s::OwnerReference::controller>("metadata.ownerReferences.controller"),
};

bool read_owners(Fields& fields, Value value, std::string_view path, std::vector<k8s::OwnerReference>& owners) {
  return fields.array(value, path, [&](Value item) {
    return owners.size() >= kMostEntries ||
           read_rows(fields, item, "metadata.ownerReferences.", kOwner, owners.emplace_back());
  });
}

constexpr Row<k8s::ObjectMeta> kMeta[] = {
    row<&k8s::ObjectMeta::name>("metadata.name"),
    row<&k8s::ObjectMeta::ns>("metadata.namespace"),
    row<&k8s::ObjectMeta::uid>("metadata.uid"),
    row<&k8s::ObjectMeta::resource_version>("metadata.resourceVersion"),
    row<&k8s::ObjectMeta::generation>("metadata.generation"),
    row<&k8s::ObjectMeta::creation_timestamp>("metadata.creationTimestamp"),
    row<&k8s::ObjectMeta::deletion_timestamp>("metadata.deletionTimestamp"),
    row_by<read_owners, &k8s::ObjectMeta::owners>("metadata.ownerReferences"),
};

}  // namespace

bool read_meta_field(Fields& fields, std::string_view key, Value value, const MetaFilter& filter,
                     k8s::ObjectMeta& meta) {
  if (key == "labels") {
    return !filter.labels || read_strings(fields, value, "metadata.labels", filter.label,
                                          filter.bounded ? kMostLabels : kAll, filter.longest, meta.labels);
  }
  if (key == "annotations") {
    return filter.annotation == nullptr ||
           read_strings(fields, value, "metadata.annotations", filter.annotation, filter.bounded ? kMostEntries : kAll,
                        filter.longest, meta.annotations);
  }
  return read_row(fields, value, "metadata.", key, kMeta, meta);
}

bool read_ready(Fields& fields, Value conditions, std::string_view path, bool& ready) {
  return read_conditions(fields, conditions, path, [&](const Condition& condition) {
    if (condition.type == "Ready") ready = condition.status == "True";
  });
}

bool read_json(Fields& fields, Value value, std::string_view path, nlohmann::json& out) {
  simdjson::ondemand::object object;
  std::string_view raw;
  if (value.get_object().get(object) != simdjson::SUCCESS || object.raw_json().get(raw) != simdjson::SUCCESS)
    return fields.fail(path, "an object");
  out = nlohmann::json::parse(raw, nullptr, false);
  return true;
}

bool read_presence(Fields& /*fields*/, Value value, std::string_view /*path*/, bool& out) {
  out = !Fields::is_null(value);
  return true;
}

bool read_has_items(Fields& fields, Value value, std::string_view path, bool& out) {
  return fields.array(value, path, [&](Value) { return out = true; });
}

bool read_name(Fields& fields, Value value, std::string_view path, k8s::Interned& out) {
  return fields.name(value, path, out);
}

bool read_on_delete(Fields& fields, Value value, std::string_view path, bool& out) {
  std::string_view text;
  if (!fields.view(value, path, text)) return false;
  out = text == "OnDelete";
  return true;
}

k8s::Result<void> finish(std::string_view kind, const Fields& fields, const k8s::ObjectMeta& meta) {
  std::string failure = fields.failure();
  k8s::Cause wrong = fields.wrong();
  if (failure.empty() && meta.name.empty()) {
    wrong = {"FieldValueInvalid", "metadata.name", "a non-empty string"};
    failure = fmt::format("{} must be {}", wrong.field, wrong.message);
  }
  if (failure.empty()) return {};
  const std::string named =
      meta.name.empty() ? std::string(kind) : fmt::format("{} {}", kind, k8s::to_string(meta.key()));
  k8s::Error error{k8s::Reason::decode, 0, fmt::format("{}: {}", named, failure)};
  if (!wrong.field.empty()) error.causes.push_back(std::move(wrong));
  return std::unexpected(std::move(error));
}

}  // namespace gso::json
