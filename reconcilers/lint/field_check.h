// Checks of single fields, as the schema of a CRD has them: what each expects, and the diagnostic where it is not so.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct DurationBounds {
  std::chrono::nanoseconds least{0};
  std::chrono::nanoseconds most = std::chrono::nanoseconds::max();
  std::string_view text;  // "from 1s to 24h"
};

class FieldCheck {
 public:
  using Words = std::span<const std::string_view>;

 protected:
  // `diagnostics` must outlive this object.
  explicit FieldCheck(std::vector<Diagnostic>& diagnostics) : diagnostics_(diagnostics) {}

  // About the field at `path_`.
  void error(std::string code, Position at, std::string message);

  // About the member at `path_`, whose key is none of `fields`: the API server drops it.
  void unknown_field(const DocumentMember& member, Words fields);

  // Visits the field of `parent` where it has one that is not null.
  template <class Visit>
  void member(const DocumentValue& parent, std::string_view name, Visit visit) {
    if (const DocumentValue* value = parent.find(name); value != nullptr && !value->is_null()) {
      const PathStep step(path_, name);
      visit(*value);
    }
  }
  // The same for a mapping.
  template <class Visit>
  void object(const DocumentValue& parent, std::string_view name, Visit visit) {
    member(parent, name, [&](const DocumentValue& value) {
      if (value.is_object()) {
        visit(value);
      } else {
        error("WrongType", value.at, fmt::format("expected a mapping, found {}", kind_name(value.kind)));
      }
    });
  }
  void word(const DocumentValue& parent, std::string_view name, Words words);
  void boolean(const DocumentValue& parent, std::string_view name);
  void integer(const DocumentValue& parent, std::string_view name, std::int64_t least, std::int64_t most);
  void duration(const DocumentValue& parent, std::string_view name, DurationBounds bounds = {});
  void count_or_percent(const DocumentValue& parent, std::string_view name);

  std::vector<Diagnostic>& diagnostics_;
  std::string path_;
};

}  // namespace gso
