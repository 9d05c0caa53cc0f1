// libyaml's events to node trees, and their scalars to values.
#include "reconcilers/profile/yaml_node.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

namespace {

constexpr std::string_view kUnsupported = "UnsupportedYAML";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Position position_of(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

// With a byte order mark, or of characters of ASCII.
bool is_utf16(std::string_view text) {
  const auto zero = [&](std::size_t at) { return at < text.size() && text[at] == '\0'; };
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
         (zero(0) != zero(1) && zero(0) == zero(2) && zero(1) == zero(3));
}

bool is_json_comment(std::string_view text) {
  return text.starts_with("//") || text.starts_with("/*");
}

std::string no_json_comments(std::string_view comment) {
  return fmt::format("JSON has no comments; remove the comment that begins here with `{}`", comment.substr(0, 2));
}

// Of a document's %YAML line, if it has one.
bool is_known_version(const yaml_version_directive_t* version) {
  return version == nullptr || (version->major == 1 && version->minor == 1);
}

}  // namespace

struct YamlStream::Parser {
  yaml_parser_t parser{};
  yaml_event_t event{};
  bool has_event = false;

  explicit Parser(std::string_view text) {
    yaml_parser_initialize(&parser);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    const char* begin = text.empty() ? "" : text.data();
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(begin), text.size());
  }
  ~Parser() {
    drop_event();
    yaml_parser_delete(&parser);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  void drop_event() {
    if (has_event) yaml_event_delete(&event);
    has_event = false;
  }
};

// Turns the events of one document into nodes, without recursion.
struct YamlStream::Builder {
  Builder(const YamlStream* of, const YamlItem& to) : stream(of), item(to) {}

  YamlDocument document;
  std::unordered_map<std::string, const YamlNode*> anchors;
  std::vector<YamlNode*> open;
  const YamlStream* stream = nullptr;
  int flow_depth = 0;  // Open collections within the outermost [] or {}.
  const YamlItem& item;
  const YamlNode* list = nullptr;  // The root's `items`, if somebody wants them.
  std::size_t before_item = 0;     // Nodes before the item that is being read.
  bool anchor_in_item = false;

  YamlNode& add(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor) {
    YamlNode& node = document.nodes.emplace_back();
    node.kind = kind;
    node.at = stream->shown(position_of(event.start_mark));
    if (open.empty())
      document.root = &node;
    else
      open.back()->children.push_back(&node);
    if (anchor != nullptr) {
      anchors[text_of(anchor)] = &node;  // Set at the start: a collection may refer to itself; the converter refuses.
      anchor_in_item = true;
    }
    return node;
  }

  // Returns why the scalar is refused, which the plugin's library reads otherwise; empty: it is not.
  std::string scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    const bool key_or_root = open.empty() || (flow_depth > 0 && open.back()->kind == YamlNode::Kind::mapping &&
                                              open.back()->children.size() % 2 == 0);
    YamlNode& node = add(YamlNode::Kind::scalar, event, data.anchor);
    node.value = {reinterpret_cast<const char*>(data.value), data.length};
    node.tag = text_of(data.tag);
    node.implicit = data.plain_implicit != 0;
    node.literal = data.style == YAML_LITERAL_SCALAR_STYLE;
    node.folded = data.style == YAML_FOLDED_SCALAR_STYLE;
    if (data.style != YAML_PLAIN_SCALAR_STYLE) return "";
    if (key_or_root && is_json_comment(node.value)) return no_json_comments(node.value);
    if (flow_depth > 0 && node.value.contains('?'))
      return fmt::format("a '?' ends a value inside [] and {{}}; put \"{}\" in quotes", shown_value(node.value));
    if (flow_depth > 0 && !node.tag.empty() && node.value.empty())
      return "a tag inside [] and {} needs a value after it; write one, or leave the tag out";
    return "";
  }

  void collection(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor, bool flow) {
    if (open.size() == 2 && open.back() == list) {
      before_item = document.nodes.size();
      anchor_in_item = false;
    }
    open.push_back(&add(kind, event, anchor));
    flow_depth += flow || flow_depth > 0 ? 1 : 0;
    if (item && open.size() == 2 && kind == YamlNode::Kind::sequence && is_value_of("items")) list = open.back();
  }

  // The collection that was opened last is the value of that key of the root.
  [[nodiscard]] bool is_value_of(std::string_view key) const {
    const YamlNode& root = *open.front();
    const std::size_t count = root.children.size();
    return root.kind == YamlNode::Kind::mapping && count % 2 == 0 &&
           root.children[count - 2]->kind == YamlNode::Kind::scalar && root.children[count - 2]->value == key;
  }

  void close() {
    const YamlNode* closed = open.back();
    open.pop_back();
    flow_depth -= flow_depth > 0 ? 1 : 0;
    if (open.size() == 2 && open.back() == list && closed->kind == YamlNode::Kind::mapping) {
      item(*closed);
      open.back()->children.pop_back();
      // Nodes that a later alias can refer to stay.
      while (!anchor_in_item && document.nodes.size() > before_item) document.nodes.pop_back();
    }
  }

  // False when the anchor is unknown.
  bool alias(const yaml_event_t& event) {
    const std::string name = text_of(event.data.alias.anchor);
    const auto found = anchors.find(name);
    if (found == anchors.end()) return false;
    YamlNode& node = add(YamlNode::Kind::alias, event, nullptr);
    node.value = name;
    node.target = found->second;
    return true;
  }
};

YamlStream::YamlStream(std::string_view text, YamlLimits limits)
    : text_(text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0)), limits_(limits) {
  if (text.size() > limits.bytes) {
    fail("TooLarge", {1, 1}, fmt::format("the text has {} bytes; at most {} are allowed", text.size(), limits.bytes));
    return;
  }
  if (is_utf16(text_)) {
    fail(std::string(kUnsupported), {1, 1}, "the text is UTF-16; save it as UTF-8");
    return;
  }
  parser_ = std::make_unique<Parser>(text_);
  if (const std::size_t mark = text_.find(kByteOrderMark); mark != std::string_view::npos)
    mark_ = place_of(text_, mark);
}

YamlStream::~YamlStream() = default;

void YamlStream::fail(std::string code, Position at, std::string message) {
  error_ = YamlError{std::move(code), shown(at), std::move(message), {}, ""};
  done_ = true;
}

bool YamlStream::pull() {
  Parser& p = *parser_;
  p.drop_event();
  p.has_event = yaml_parser_parse(&p.parser, &p.event) != 0;
  return p.has_event;
}

bool YamlStream::passes_mark(Position at) const {
  return mark_ && at > *mark_;
}

void YamlStream::fail_at_mark() {
  fail(std::string(kUnsupported), *mark_,
       "a byte order mark (U+FEFF) is allowed only at the beginning of the text; remove the one here");
}

void YamlStream::syntax_error(bool in_flow) {
  const yaml_parser_t& p = parser_->parser;
  YamlProblem found;
  found.problem = p.problem != nullptr ? p.problem : "cannot be read";
  if (p.error == YAML_READER_ERROR) return fail("SyntaxError", place_of(text_, p.problem_offset), found.problem);
  found.context = p.context != nullptr ? p.context : "";
  found.at = position_of(p.problem_mark);
  found.context_at = position_of(p.context_mark);
  found.lines_before = limits_.first_line - 1;
  const std::string_view rest = text_.substr(offset_of(text_, found.at));
  if (passes_mark({found.at.line, found.at.column + 1})) return fail_at_mark();
  if (in_flow && is_json_comment(rest)) return fail(std::string(kUnsupported), found.at, no_json_comments(rest));
  if (found.problem == "found unexpected ':'") {
    return fail(std::string(kUnsupported), found.at,
                "inside [] and {} a ':' needs a space after it; add one, or put the whole text in quotes");
  }
  error_ = explain_syntax_error(text_, found);
  error_->at = shown(error_->at);
  error_->cause = error_->cause.line > 0 ? shown(error_->cause) : Position{};
  done_ = true;
}

void YamlStream::take(Builder& builder) {
  const yaml_event_t& event = parser_->event;
  const Position at = position_of(event.start_mark);
  switch (event.type) {
    case YAML_STREAM_END_EVENT:
      done_ = true;
      break;
    case YAML_SCALAR_EVENT:
      if (std::string why = builder.scalar(event); !why.empty()) fail(std::string(kUnsupported), at, std::move(why));
      break;
    case YAML_ALIAS_EVENT:
      if (!builder.alias(event)) {
        fail("UnknownAnchor", at,
             fmt::format("anchor &{0} is not defined before *{0}", shown_value(text_of(event.data.alias.anchor))));
      }
      break;
    case YAML_MAPPING_START_EVENT:
      builder.collection(YamlNode::Kind::mapping, event, event.data.mapping_start.anchor,
                         event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
      break;
    case YAML_SEQUENCE_START_EVENT:
      builder.collection(YamlNode::Kind::sequence, event, event.data.sequence_start.anchor,
                         event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
      break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
      builder.close();
      break;
    case YAML_DOCUMENT_START_EVENT:
      if (!is_known_version(event.data.document_start.version_directive))
        fail("SyntaxError", at, "only %YAML 1.1 is supported; remove the %YAML line");
      break;
    default:
      break;
  }
}

std::optional<YamlDocument> YamlStream::next(const YamlItem& item) {
  Builder builder(this, item);
  while (!done_) {
    if (!pull()) {
      syntax_error(builder.flow_depth > 0);
      break;
    }
    const yaml_event_t& event = parser_->event;
    if (passes_mark(position_of(event.end_mark))) {
      fail_at_mark();
      break;
    }
    take(builder);
    if (!done_ && builder.open.size() > static_cast<std::size_t>(limits_.depth)) {
      fail("TooDeep", position_of(event.start_mark),
           fmt::format("collections are nested more than {} deep", limits_.depth));
    }
    if (!done_ && event.type == YAML_DOCUMENT_END_EVENT) return std::move(builder.document);
  }
  return std::nullopt;
}

// --- JSON manifests for a YAML reader: where the two languages read the same text differently.

namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

bool begins_as_json(std::string_view text) {
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// The code of "\uXXXX" at this place.
std::optional<std::uint32_t> unicode_escape(std::string_view text, std::size_t at) {
  constexpr std::size_t kLength = 6;
  if (at + kLength > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  std::uint32_t code = 0;
  const char* const end = text.data() + at + kLength;
  const auto read = std::from_chars(text.data() + at + 2, end, code, 16);
  return read.ec == std::errc() && read.ptr == end ? std::optional(code) : std::nullopt;
}

bool is_high(std::uint32_t code) {
  return code >= 0xd800 && code < 0xdc00;
}

bool is_low(std::uint32_t code) {
  return code >= 0xdc00 && code < 0xe000;
}

// How many bytes stand here for a character that YAML does not take as text, and which: DEL, C1 controls (U+0085 ends a
// line), U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF.
std::pair<std::size_t, std::uint32_t> special(std::string_view rest) {
  static constexpr std::pair<std::string_view, std::uint32_t> kSpecial[] = {
      {"\u2028", 0x2028}, {"\u2029", 0x2029}, {"\ufeff", 0xfeff}, {"\ufffe", 0xfffe}, {"\uffff", 0xffff}};
  constexpr unsigned char kDel = 0x7f;
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  if (byte(0) <= kDel) return {byte(0) == kDel ? 1 : 0, kDel};
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return {2, byte(1)};
  const auto* found = std::ranges::find_if(kSpecial, [&](const auto& each) { return rest.starts_with(each.first); });
  return found == std::end(kSpecial) ? std::pair(std::size_t{0}, 0U) : std::pair(found->first.size(), found->second);
}

// Copies the escape that begins at `at`, and returns its length.
std::size_t copy_escape(std::string_view text, std::size_t at, std::string& out, bool& changed) {
  const auto code = unicode_escape(text, at);
  if (!code || (!is_high(*code) && !is_low(*code))) {
    const std::size_t length = std::min<std::size_t>(2, text.size() - at);
    out += text.substr(at, length);
    return length;
  }
  changed = true;
  const auto low = unicode_escape(text, at + 6);
  if (is_high(*code) && low && is_low(*low)) {
    out += fmt::format("\\U{:08x}", 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00));
    return 12;
  }
  out += fmt::format("\\u{:04x}", kReplacement);
  return 6;
}

}  // namespace

std::optional<std::string> json_for_yaml(std::string_view text) {
  if (!begins_as_json(text)) return std::nullopt;
  std::string out;
  out.reserve(text.size() + 64);
  bool changed = false;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    if (in_string && text[at] == '\\') {
      at += copy_escape(text, at, out, changed);
      continue;
    }
    if (const auto [length, code] = special(text.substr(at)); in_string && length > 0) {
      out += fmt::format("\\u{:04x}", code);
      at += length;
      changed = true;
      continue;
    }
    in_string = in_string != (text[at] == '"');
    out += text[at];
    ++at;
  }
  return changed ? std::optional(std::move(out)) : std::nullopt;
}

// --- What a scalar means: the YAML 1.1 resolution table of the plugin's YAML library.

namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
// Of the alternatives of YamlScalar, in their order.
constexpr std::array<std::string_view, std::variant_size_v<YamlScalar>> kTags{"null", "bool",  "int",
                                                                              "int",  "float", "str"};

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Words with a meaning of their own.
std::optional<YamlScalar> resolve_word(std::string_view text) {
  constexpr std::size_t kLongest = 5;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text.size() > kLongest) return std::nullopt;
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return YamlScalar();
  if (one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return kInfinity;
  if (one_of(text, {"-.inf", "-.Inf", "-.INF"})) return -kInfinity;
  return std::nullopt;
}

YamlScalar resolve_plain(const std::string& text) {
  if (const auto word = resolve_word(text)) return *word;
  if (!k8s::is_digit(text[0]) && !std::string_view("+-.").contains(text[0])) return text;
  std::string plain = text;
  std::erase(plain, '_');
  if (const auto number = parse_go_int(plain, 0)) return *number;
  if (const auto number = parse_go_uint(plain, 0)) return *number;
  // Not what Go reads besides: hexadecimal ones, inf and nan.
  const bool decimal = plain.find_first_not_of("0123456789+-.eE") == std::string::npos;
  const auto number = decimal ? parse_go_float(plain) : std::nullopt;
  return number ? YamlScalar(*number) : text;
}

}  // namespace

std::optional<YamlScalar> resolve_scalar(const YamlNode& node) {
  if (node.tag.empty() && !node.implicit) return node.value;
  const std::string_view tag =
      node.tag.starts_with(kTagPrefix) ? std::string_view(node.tag).substr(kTagPrefix.size()) : std::string_view();
  if (tag == "binary") {
    auto decoded = k8s::base64_decode(node.value);
    return decoded ? std::optional<YamlScalar>(*std::move(decoded)) : std::nullopt;
  }
  if (tag == "timestamp") return std::nullopt;  // No field is one.
  // Of an unknown tag the text is kept.
  if (!node.tag.empty() && !one_of(tag, {"bool", "int", "float", "null"})) return node.value;
  YamlScalar resolved = resolve_plain(node.value);
  if (tag.empty() || tag == kTags[resolved.index()]) return resolved;
  const auto* integer = std::get_if<std::int64_t>(&resolved);
  return tag == "float" && integer != nullptr ? std::optional<YamlScalar>(static_cast<double>(*integer)) : std::nullopt;
}

}  // namespace gso
