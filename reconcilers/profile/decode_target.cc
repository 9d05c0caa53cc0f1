// See decode_target.h.
#include "reconcilers/profile/decode_target.h"

#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

DecodeTarget flags_target(const std::string& key) {
  return find_field(kFlagFields, key) != kFlagFields.end() ? DecodeTarget::plugin_flags : DecodeTarget::none;
}

DecodeTarget nested_target(const std::string& key) {
  for (const std::string_view name :
       {"migStrategy", "mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot", "deviceDiscoveryStrategy"}) {
    if (equal_fold(key, name)) {
      return DecodeTarget::string;
    }
  }
  return DecodeTarget::none;
}

}  // namespace

bool is_left_out(DecodeTarget target, const std::string& key) {
  return target == DecodeTarget::object_status && key == "images";
}

DecodeTarget target_of(DecodeTarget target, const std::string& key) {
  if (target == DecodeTarget::config) {
    return equal_fold(key, "version") ? DecodeTarget::string
           : equal_fold(key, "flags") ? DecodeTarget::flags
                                      : DecodeTarget::none;
  }
  if (target == DecodeTarget::object) {
    return key == "status" ? DecodeTarget::object_status : DecodeTarget::none;
  }
  return target == DecodeTarget::flags          ? flags_target(key)
         : target == DecodeTarget::plugin_flags ? nested_target(key)
                                                : DecodeTarget::none;
}

}  // namespace gso
