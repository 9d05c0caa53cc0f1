// Texts that the API server accepts: names of objects, and the patterns of SharingPolicy's CRD.
#pragma once

#include <string_view>

namespace gso {

// metadata.name: an RFC 1123 subdomain.
[[nodiscard]] bool is_object_name(std::string_view name);

// Of a namespace, a container, a volume: an RFC 1123 label.
[[nodiscard]] bool is_dns_label(std::string_view name);

// ^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$ and at most 32 characters. Go's durations have more: a sign, "µs", and a point
// without digits on one of its sides.
[[nodiscard]] bool is_crd_duration(std::string_view text);

// profile.inline.resource: ^nvidia\.com/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$ and at most 63 characters.
[[nodiscard]] bool is_nvidia_resource(std::string_view name);

}  // namespace gso
