// Any bytes as the body of a request to the webhook, whole or only its beginning: no crash, and an answer that the API
// server can read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "controller/serving/admission_review.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gso::AdmissionParts kParts = [] {
    gso::AdmissionParts parts;
    parts.holds_profiles = [](const k8s::ObjectKey& key) { return !key.name.empty(); };
    parts.pod_rules = [] { return gso::PodRules(); };
    parts.refuse_pods = true;
    return parts;
  }();
  const std::string_view body(reinterpret_cast<const char*>(data), size < 4000 ? size : 4000);
  for (const bool cut : {false, true}) {
    const gso::HttpAnswer answer = gso::answer_review(body, kParts, cut);
    if (answer.status == 400) continue;
    const auto review = nlohmann::json::parse(answer.body, nullptr, false);
    if (answer.status != 200 || !review["response"]["allowed"].is_boolean()) std::abort();
    if (cut && review["response"]["allowed"] == false) std::abort();
  }
  return 0;
}
