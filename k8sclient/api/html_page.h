// What is quoted of an HTML page: proxies and load balancers answer with one where the API server sends a Status.
// Status.
#pragma once

#include <string>
#include <string_view>

namespace k8s {

[[nodiscard]] bool is_html(std::string_view body);

// The title of the page, else its first heading, else its words without tags, scripts and styles. Empty: it has none.
[[nodiscard]] std::string words_of_html(std::string_view page);

}  // namespace k8s
