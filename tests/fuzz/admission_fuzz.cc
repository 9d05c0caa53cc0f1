// Any bytes as the object of an AdmissionReview: no crash, and a cause for each refusal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "reconcilers/lint/admission.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The server refuses texts of more levels before it reads them (controller/serving/admission_review.cc).
  const std::string_view text(reinterpret_cast<const char*>(data), size < 2000 ? size : 2000);
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded()) return 0;
  for (const bool refuse : {false, true}) {
    const gso::AdmissionVerdict created = gso::judge_admission(object, {}, {.pods = {}, .refuse_pods = refuse});
    if (!gso::judge_admission(object, object, {.pods = {}, .refuse_pods = refuse}).allowed()) std::abort();
    for (const auto& cause : created.causes)
      if (cause.field.empty() || cause.line.find(": error: ") == std::string::npos) std::abort();
    for (const std::string& warning : gso::kubectl_warnings(created))
      if (warning.size() > 4 * 256) std::abort();
  }
  return 0;
}
