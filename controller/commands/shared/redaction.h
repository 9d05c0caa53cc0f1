// Removes secrets from data that leaves a cluster: objects as JSON, and lines of logs. In doubt a value is removed.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace gso {

inline constexpr std::string_view kRedacted = "(redacted)";

// Of an object: metadata.managedFields and the annotation with the last applied configuration go; values of fields,
// environment variables, annotations and arguments that are named like a secret (token, password, credential, key, …)
// become kRedacted, as does the data of Secrets; the same for texts as below, anywhere.
void redact(nlohmann::ordered_json& object);

// A text without bearer tokens, JSON Web Tokens, PEM blocks, passwords in URLs, and values behind a name like that of a
// secret (NAME=VALUE, "NAME": "VALUE", --NAME VALUE).
[[nodiscard]] std::string redacted(std::string_view text);

// Named like a secret, whatever the case.
[[nodiscard]] bool is_secret_name(std::string_view name);

}  // namespace gso
