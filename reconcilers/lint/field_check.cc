// See field_check.h.
#include "reconcilers/lint/field_check.h"

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include "reconcilers/lint/crd_patterns.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_numbers.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

void FieldCheck::error(std::string code, Position at, std::string message) {
  diagnostics_.push_back({Diagnostic::Severity::error, std::move(code), path_, at.line, at.column, std::move(message)});
}

void FieldCheck::unknown_field(const DocumentMember& member, Words fields) {
  const auto near = nearest_word(member.key, fields);
  diagnostics_.push_back(
      {Diagnostic::Severity::warning, "UnknownField", path_, member.key_at.line, member.key_at.column,
       near.empty() ? fmt::format("unknown field; the API server drops it. Known fields: {}", fmt::join(fields, ", "))
                    : fmt::format("unknown field; the API server drops it. Did you mean \"{}\"?", near)});
}

void FieldCheck::word(const DocumentValue& parent, std::string_view name, Words words) {
  member(parent, name, [&](const DocumentValue& value) {
    if (!value.is_string() || std::find(words.begin(), words.end(), value.text) == words.end()) {
      const auto near = nearest_word(value.text, words);
      error("UnknownValue", value.at,
            fmt::format("\"{}\" is not allowed; {}", shown_value(value.text),
                        near.empty() ? fmt::format("use one of {}", fmt::join(words, ", "))
                                     : fmt::format("did you mean \"{}\"?", near)));
    }
  });
}

void FieldCheck::boolean(const DocumentValue& parent, std::string_view name) {
  member(parent, name, [&](const DocumentValue& value) {
    if (value.kind != DocumentValue::Kind::boolean) {
      error("WrongType", value.at, fmt::format("expected true or false, found {}", kind_name(value.kind)));
    }
  });
}

void FieldCheck::integer(const DocumentValue& parent, std::string_view name, std::int64_t least, std::int64_t most) {
  member(parent, name, [&](const DocumentValue& value) {
    const auto number = value.kind == DocumentValue::Kind::number ? parse_go_int(value.text, 10) : std::nullopt;
    if (!number || *number < least || *number > most) {
      const bool quoted = value.is_string() && parse_go_int(value.text, 10);
      error("OutOfRange", value.at,
            fmt::format("expected a whole number from {} to {}{}", least, most, quoted ? ", without quotes" : ""));
    }
  });
}

void FieldCheck::duration(const DocumentValue& parent, std::string_view name, DurationBounds bounds) {
  member(parent, name, [&](const DocumentValue& value) {
    const auto parsed = value.is_string() ? parse_go_duration(value.text) : std::nullopt;
    if (!parsed || !is_crd_duration(value.text)) {
      error("InvalidDuration", value.at, "expected a duration like \"90s\" or \"1h30m\", in ns, us, ms, s, m, h");
    } else if (*parsed < bounds.least.count() || *parsed > bounds.most.count()) {
      error("OutOfRange", value.at, fmt::format("expected a duration {}", bounds.text));
    }
  });
}

void FieldCheck::count_or_percent(const DocumentValue& parent, std::string_view name) {
  member(parent, name, [&](const DocumentValue& value) {
    const bool number = value.kind == DocumentValue::Kind::number;
    const auto parsed = number || value.is_string() ? IntOrPercent::parse(value.text) : std::nullopt;
    if (parsed && parsed->value >= 1 && !parsed->percent && !number) {
      error("OutOfRange", value.at,
            fmt::format("a count must have no quotes: write {}, or a percentage such as \"10%\"",
                        shown_value(value.text)));
    } else if (!parsed || parsed->value < 1 || parsed->percent == number) {
      error("OutOfRange", value.at, "expected a count of at least 1, or a percentage from \"1%\" to \"100%\"");
    }
  });
}

}  // namespace gso
