// A toleration, for the projections of pods and of pod templates.
#pragma once

#include <string_view>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/objects.h"

namespace gso::json {

// `field` names the list in errors: "spec.tolerations". `ends`, if given: set to whether the toleration is temporary
// (tolerationSeconds).
inline bool read_toleration(Fields& fields, Value value, std::string_view field, Toleration& out,
                            bool* ends = nullptr) {
  return fields.object(value, field, [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, field, out.key);
    if (key == "operator") return fields.text(inner, field, out.op);
    if (key == "value") return fields.text(inner, field, out.value);
    if (key == "effect") return fields.text(inner, field, out.effect);
    if (key == "tolerationSeconds" && ends != nullptr) *ends = !Fields::is_null(inner);
    return true;
  });
}

}  // namespace gso::json
