// JSON, and YAML as kubectl lays it out: block style for what holds something, flow style for what is empty, JSON's
// quotes for what needs any.
#include "controller/commands/shared/output_form.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/printable_json.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Letters, digits and a few signs, beginning with a letter, and no word that YAML 1.1 reads as a boolean or null.
bool is_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords{"true", "false", "yes", "no", "on",
                                                           "off",  "null",  "y",   "n",  "~"};
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto fine = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (text.empty() || !letter(static_cast<unsigned char>(text.front()))) return false;
  if (!std::all_of(text.begin(), text.end(), fine)) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

std::string scalar(const OrderedJson& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return printable_json(dump(value));  // JSON is YAML.
}

bool is_block(const OrderedJson& value) {
  return value.is_structured() && !value.empty();
}

// `first`: the position is already behind "- ".
void print(const OrderedJson& value, std::size_t indent, bool first, std::ostream& out) {
  const std::string blanks(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!first) out << blanks;
      first = false;
      out << scalar(OrderedJson(key)) << ":";
      if (!is_block(member)) {
        out << " " << scalar(member) << "\n";
        continue;
      }
      out << "\n";
      print(member, indent + (member.is_object() ? 2 : 0), false, out);
    }
    return;
  }
  for (const OrderedJson& item : value) {
    if (!first) out << blanks;
    first = false;
    out << "- ";
    if (is_block(item)) {
      print(item, indent + 2, true, out);
    } else {
      out << scalar(item) << "\n";
    }
  }
}

}  // namespace

void print_document(const OrderedJson& document, OutputForm form, std::ostream& out) {
  if (form == OutputForm::json) {
    out << printable_json(document.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) << "\n";
  } else if (is_block(document)) {
    print(document, 0, false, out);
  } else {
    out << scalar(document) << "\n";
  }
}

}  // namespace gso
