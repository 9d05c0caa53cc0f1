// A toleration, for the projections of pods and of pod templates.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/objects.h"

namespace gso::json {

// `field` names the list in errors: "spec.tolerations". `ends`: set to whether the toleration is temporary
// (tolerationSeconds).
inline bool read_toleration(Fields& fields, Value value, std::string_view field, Toleration& out, bool* ends) {
  return fields.object(value, field, [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, field, out.key);
    if (key == "operator") return fields.text(inner, field, out.op);
    if (key == "value") return fields.text(inner, field, out.value);
    if (key == "effect") return fields.text(inner, field, out.effect);
    if (key == "tolerationSeconds") *ends = !Fields::is_null(inner);
    return true;
  });
}

// A list of them, without those that are temporary if `lasting`.
inline bool read_tolerations(Fields& fields, Value value, std::string_view field, bool lasting,
                             std::vector<Toleration>& out) {
  return fields.array(value, field, [&](Value item) {
    if (out.size() >= kMostEntries) return true;
    bool ends = false;
    const bool read = read_toleration(fields, item, field, out.emplace_back(), &ends);
    if (lasting && ends) out.pop_back();
    return read;
  });
}

}  // namespace gso::json
