// Resources of containers, as the API server validates them: names, quantities, requests that do not exceed limits; of
// extended resources (nvidia.com/gpu, …) whole numbers, and requests that equal the limits. Source:
// kubernetes/kubernetes, pkg/apis/core/validation (ValidateContainerResourceName, validateResourceQuantityValue,
// ValidateResourceRequirements), pkg/apis/core/v1/helper (IsExtendedResourceName).
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/lint/checks.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/quantity.h"

namespace gso {
namespace {

bool is_extended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos && resource.find("kubernetes.io/") == std::string_view::npos &&
         !resource.starts_with("requests.");
}

class ResourcesCheck {
 public:
  ResourcesCheck(const DocumentValue& resources, std::string path, std::vector<Diagnostic>& found)
      : limits_(resources.find("limits")),
        requests_(resources.find("requests")),
        path_(std::move(path)),
        found_(found) {}

  void run() {
    amounts(limits_, "limits");
    amounts(requests_, "requests");
    if (requests_ == nullptr) return;
    for (const DocumentMember& request : requests_->members) {
      if (is_extended(request.key)) {
        equal(request);
      } else {
        within_limit(request);
      }
    }
  }

 private:
  void add(std::string code, std::string_view list, const DocumentMember& at, std::string message) {
    found_.push_back({Severity::error, std::move(code), fmt::format("{}.{}[{}]", path_, list, at.key), at.value.at.line,
                      at.value.at.column, std::move(message)});
  }

  // nullopt: it has been reported. Null counts as 0.
  static std::optional<long double> amount_of(const DocumentValue& value) {
    if (value.is_null()) return 0;
    const bool is_text = value.is_string() || value.kind == DocumentValue::Kind::number;
    return is_text ? parse_quantity(value.text) : std::nullopt;
  }

  void amounts(const DocumentValue* list, std::string_view name) {
    if (list == nullptr) return;
    for (const DocumentMember& member : list->members) {
      if (!is_extended(member.key)) {
        standard(member, name);
        continue;
      }
      const auto amount = amount_of(member.value);
      if (amount && *amount >= 0 && std::floor(*amount) == *amount) continue;
      const bool is_text = member.value.is_string() || member.value.kind == DocumentValue::Kind::number;
      add("ResourceNotWhole", name, member,
          fmt::format("{} of {}: the API server accepts only whole numbers of 0 or more, because devices cannot be "
                      "divided by a request",
                      is_text ? shown_value(member.value.text) : std::string(kind_name(member.value.kind)),
                      shown_value(member.key)));
    }
  }

  // One that Kubernetes itself knows.
  void standard(const DocumentMember& member, std::string_view name) {
    static constexpr std::array<std::string_view, 3> kStandard{"cpu", "memory", "ephemeral-storage"};
    const bool known = std::ranges::find(kStandard, member.key) != kStandard.end() ||
                       member.key.starts_with("hugepages-") || member.key.contains('/');
    const auto amount = amount_of(member.value);
    if (!known) {
      add("ResourceInvalid", name, member,
          fmt::format("{} is no resource of a container, and the API server refuses it; GPUs are nvidia.com/gpu",
                      shown_value(member.key)));
    } else if (!amount || *amount < 0) {
      add("ResourceInvalid", name, member,
          fmt::format(
              "{} of {} is no quantity, and the API server refuses it; write a number such as 500m, 2 or 4Gi",
              member.value.text.empty() ? std::string(kind_name(member.value.kind)) : shown_value(member.value.text),
              shown_value(member.key)));
    }
  }

  void within_limit(const DocumentMember& request) {
    const DocumentValue* limit = limits_ == nullptr ? nullptr : limits_->find(request.key);
    const auto wanted = amount_of(request.value);
    const auto most = limit == nullptr ? std::nullopt : amount_of(*limit);
    if (!wanted || !most || *wanted <= *most) return;
    add("ResourceInvalid", "requests", request,
        fmt::format("{} of {} are requested and the limit is {}: the API server refuses a request above its limit",
                    shown_value(request.value.text), shown_value(request.key), shown_value(limit->text)));
  }

  void equal(const DocumentMember& request) {
    const DocumentValue* limit = limits_ == nullptr ? nullptr : limits_->find(request.key);
    const auto wanted = amount_of(request.value);
    if (limit == nullptr) {
      add("RequestUnlikeLimit", "requests", request,
          fmt::format("{} is requested and has no limit, which the API server refuses: write the number under limits; "
                      "the request then follows",
                      shown_value(request.key)));
      return;
    }
    const auto most = amount_of(*limit);
    if (!wanted || !most || *wanted == *most) return;
    add("RequestUnlikeLimit", "requests", request,
        fmt::format("{} of {} are requested and the limit is {}: the API server wants both to be equal; write the "
                    "limit alone",
                    shown_value(request.value.text), shown_value(request.key), shown_value(limit->text)));
  }

  const DocumentValue* limits_;
  const DocumentValue* requests_;
  std::string path_;
  std::vector<Diagnostic>& found_;
};

}  // namespace

void check_extended_resources(const DocumentValue& container, const std::string& path,
                              std::vector<Diagnostic>& diagnostics) {
  const DocumentValue* resources = container.find("resources");
  if (resources != nullptr) ResourcesCheck(*resources, path + ".resources", diagnostics).run();
}

}  // namespace gso
