// The walk over an object's members that both halves of the decoder share.
#pragma once

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/profile_decoder.h"

namespace gso {

template <class Visit>
void ProfileDecoder::members(const DocumentValue& object, Fields fields, bool ignoring_case, Visit visit) {
  std::vector<std::string_view> seen;
  for (const DocumentMember& member : object.members) {
    auto field = std::find(fields.begin(), fields.end(), member.key);
    if (field == fields.end() && ignoring_case) {
      field = std::find_if(fields.begin(), fields.end(), [&](std::string_view f) { return equal_fold(member.key, f); });
    }
    if (field == fields.end()) {
      unknown_field(member, fields);
      continue;
    }
    if (member.key != *field) {
      const PathStep step(path_, member.key);
      info("UnusualCase", member.key_at,
           fmt::format("\"{}\" is read as \"{}\"; use this spelling", shown_value(member.key), *field));
    }
    if (std::find(seen.begin(), seen.end(), *field) != seen.end()) {
      const PathStep step(path_, member.key);
      warning("DuplicateKey", member.key_at,
              fmt::format("\"{}\" appears more than once, in different case; one overwrites the other", *field));
    }
    seen.push_back(*field);
    visit(*field, member);
  }
}

}  // namespace gso
