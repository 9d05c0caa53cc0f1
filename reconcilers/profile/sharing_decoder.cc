// Decoding of sharing.timeSlicing and sharing.mps: the plugin's own unmarshalers, where case counts.
#include <string>

#include <fmt/format.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/profile_decoder.h"

namespace gso {
namespace {

constexpr std::string_view kDomainPrefix = "nvidia.com/";
constexpr std::size_t kMaxNameLength = 63;

// A spelling of the name that upstream would take, or empty.
std::string repaired_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(name.starts_with(kDomainPrefix) ? kDomainPrefix.size() : 0)) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (c == '+') {
      out += '.';
    } else if (c == '_') {
      out += '-';
    } else if (c != ' ') {
      out += c;
    }
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  return k8s::is_dns_subdomain(out) ? std::string(kDomainPrefix) + out : std::string();
}

bool is_unsigned(std::string_view text) {
  return parse_go_uint(text, 10).has_value();
}

// A GPU index, "gpu:mig" indexes, or the UUID of a GPU or a MIG device.
bool is_device_reference(std::string_view text) {
  const auto is_gpu_uuid = [](std::string_view t) { return t.starts_with("GPU-") && is_uuid(t.substr(4)); };
  if (is_unsigned(text) || is_gpu_uuid(text)) return true;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    if (is_unsigned(text.substr(0, colon)) && is_unsigned(text.substr(colon + 1))) return true;
  }
  if (!text.starts_with("MIG-")) return false;
  text.remove_prefix(4);
  const auto first = text.find('/');
  const auto second = first == std::string_view::npos ? first : text.find('/', first + 1);
  return is_uuid(text) ||
         (second != std::string_view::npos && is_gpu_uuid(text.substr(0, first)) &&
          is_unsigned(text.substr(first + 1, second - first - 1)) && is_unsigned(text.substr(second + 1)));
}

}  // namespace

void ProfileDecoder::sharing(const DocumentValue& value) {
  members(value, kSharingFields, true, [this](const ConfigField& field, const DocumentMember& member) {
    if (field.name == "timeSlicing") {
      section(member, out_.time_slicing);
    } else if (member.value.is_null()) {
      info("EmptySection", member.key_at, "\"mps\" is empty, which means no MPS");
      out_.mps.reset();
    } else {
      section(member, out_.mps ? *out_.mps : out_.mps.emplace());
    }
  });
}

void ProfileDecoder::section(const DocumentMember& member, SharingSection& section) {
  const DocumentValue& value = member.value;
  out_.places[path_] = member.key_at;
  if (!value.is_null() && !expect_object(value)) return;
  bool listed = false;
  section.rename_by_default = section.rename_by_default && value.find("renameByDefault") != nullptr;
  members(value, kSectionFields, false, [&](const ConfigField& field, const DocumentMember& part) {
    const DocumentValue& v = part.value;
    if (field.name != "resources") {
      if (v.kind != DocumentValue::Kind::boolean && !v.is_null()) wrong_type(v, "true or false (without quotes)");
      if (field.name == "failRequestsGreaterThanOne") {
        section.fail_requests_greater_than_one = v.is_null() ? std::nullopt : std::optional(v.boolean);
      } else {
        section.rename_by_default = v.is_null() ? section.rename_by_default : v.boolean;
      }
    } else if (!v.is_null() && !v.is_array()) {
      listed = true;
      wrong_type(v, "a list of {name, replicas}");
    } else {
      listed = !v.items.empty();
      section.resources.resize(v.items.size());
      for (std::size_t i = 0; i < v.items.size(); ++i) {
        const PathStep item(path_, i);
        entry(v.items[i], section.resources[i], section.rename_by_default);
      }
    }
  });
  if (!listed) {
    const PathStep inner(path_, "resources");
    const auto* empty = value.find("resources");
    const std::string misspelt = misspelling_of("resources", value, kSectionFields);
    error("NoResources", empty != nullptr ? empty->at : value.at,
          !misspelt.empty() ? "at least one resource is required" + misspelt
                            : std::string("at least one resource is required, for example {name: nvidia.com/gpu, "
                                          "replicas: 4}; to disable sharing, remove the whole section"));
  }
}

void ProfileDecoder::entry(const DocumentValue& value, ReplicatedResource& entry, bool rename_by_default) {
  if (!value.is_null() && !expect_object(value)) return;
  members(value, kEntryFields, false, [&](const ConfigField& field, const DocumentMember& member) {
    const DocumentValue& v = member.value;
    out_.places[path_] = v.at;
    if (field.name == "name") {
      entry.name = resource_name(v).value_or("");
    } else if (field.name == "rename") {
      rename(v, entry, rename_by_default);
    } else if (field.name == "devices") {
      devices(v);
    } else {
      replica_count(v, entry);
    }
  });
  missing(value, "name", "NameMissing", "an entry needs a \"name\", for example nvidia.com/gpu", kEntryFields);
  missing(value, "replicas", "ReplicasMissing", "an entry needs \"replicas\", an integer of 2 or more", kEntryFields);
}

void ProfileDecoder::replica_count(const DocumentValue& value, ReplicatedResource& entry) {
  if (!value.is_null()) {  // null leaves what an earlier spelling of the section has set.
    const auto count = value.kind == DocumentValue::Kind::number ? parse_go_int(value.text, 10) : std::nullopt;
    if (!count && value.kind == DocumentValue::Kind::number) {
      error("ReplicasNotInteger", value.at,
            fmt::format("replicas is {}; it must be a whole number from 2 to 9223372036854775807",
                        shown_value(value.text)));
      return;
    }
    if (!count) {
      wrong_type(value, "an integer of 2 or more (without quotes)");
      return;
    }
    entry.replicas = *count;
  }
  if (entry.replicas < 2) {
    const std::string shown = value.is_null() ? "empty" : std::to_string(entry.replicas);
    error("ReplicasBelowMinimum", value.at,
          fmt::format("replicas is {}; it must be 2 or more (to disable sharing, remove the sharing section)", shown));
  }
}

void ProfileDecoder::rename(const DocumentValue& value, const ReplicatedResource& entry, bool rename_by_default) {
  const auto name = resource_name(value);
  if (!name || (rename_by_default && *name == entry.name + ".shared")) return;
  warning(
      "RenameIgnored", value.at,
      rename_by_default
          ? fmt::format("rename is not supported and is ignored; renameByDefault makes it {}.shared",
                        shown_value(entry.name))
          : std::string("rename is not supported and is ignored; the resource keeps its name (renameByDefault: true "
                        "appends .shared)"));
}

std::optional<std::string> ProfileDecoder::resource_name(const DocumentValue& value) {
  if (!value.is_string() && !value.is_null()) {
    wrong_type(value, "a resource name like nvidia.com/gpu (quote it)");
    return std::nullopt;
  }
  std::string name = value.text.starts_with(kDomainPrefix) ? value.text : std::string(kDomainPrefix) + value.text;
  if (name.size() > kMaxNameLength) {
    error("NameTooLong", value.at,
          fmt::format("\"{}\" has {} characters; at most {} are allowed, nvidia.com/ included", shown_value(name),
                      name.size(), kMaxNameLength));
    return std::nullopt;
  }
  if (!k8s::is_dns_subdomain(std::string_view(name).substr(kDomainPrefix.size()))) {
    const std::string repaired = repaired_name(value.text);
    const auto slash = value.text.find('/');
    std::string advice =
        "after nvidia.com/ use lower case letters, digits, '-' and '.', with a letter or digit at both ends";
    if (!repaired.empty()) {
      advice += fmt::format("; did you mean {}?", shown_value(repaired));
    } else if (slash != std::string::npos && !value.text.starts_with(kDomainPrefix)) {
      advice = "only resources of nvidia.com can be shared, for example nvidia.com/gpu";
    }
    error("NameInvalid", value.at, fmt::format("\"{}\" is not a resource name: {}", shown_value(value.text), advice));
    return std::nullopt;
  }
  return name;
}

void ProfileDecoder::devices(const DocumentValue& value) {
  constexpr auto kForms = "leave \"devices\" out, or write all: sharing only some of the GPUs is not supported";
  const auto ignored = [&] {
    warning("DevicesIgnored", value.at, "devices is not supported and is ignored: all GPUs of the resource are shared");
  };
  if (value.is_string() || value.is_null()) {
    if (value.text != "all") {
      error("DevicesInvalid", value.at, fmt::format("devices is \"{}\"; {}", shown_value(value.text), kForms));
    }
  } else if (value.kind == DocumentValue::Kind::number && parse_go_int(value.text, 10)) {
    if (*parse_go_int(value.text, 10) > 0) {
      ignored();
    } else {
      error("DevicesInvalid", value.at, fmt::format("devices is {}; {}", shown_value(value.text), kForms));
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const PathStep step(path_, i);
      if (!device_reference(value.items[i])) return;
    }
    ignored();
  } else {
    error("DevicesInvalid", value.at, fmt::format("devices is {}; {}", kind_name(value.kind), kForms));
  }
}

bool ProfileDecoder::device_reference(const DocumentValue& value) {
  const bool fits = value.is_null() || (value.kind == DocumentValue::Kind::number && is_unsigned(value.text)) ||
                    (value.is_string() && is_device_reference(value.text));
  if (!fits) {
    error("DevicesInvalid", value.at,
          fmt::format("{} is not a device; use an index (0), a MIG index (0:1) or a UUID (GPU-…), although the plugin "
                      "ignores all of them",
                      value.is_string() ? '"' + shown_value(value.text) + '"' : std::string(kind_name(value.kind))));
  }
  return fits;
}

}  // namespace gso
