// libyaml's events to node trees.
#include "reconcilers/profile/yaml_node.h"

#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace gso {
namespace {

// The plugin's YAML library reads its input in pieces of this size. A document that ends before an unreadable byte is
// accepted there when the byte lies in a later piece, so the pieces have the same size here.
constexpr std::size_t kReadPiece = 512;

Position position_of(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

struct YamlStream::Parser {
  yaml_parser_t parser{};
  yaml_event_t event{};
  bool has_event = false;
  std::string_view text;
  std::size_t read = 0;

  explicit Parser(std::string_view input) : text(input) {
    yaml_parser_initialize(&parser);
    yaml_parser_set_input(&parser, &Parser::read_piece, this);
  }
  ~Parser() {
    drop_event();
    yaml_parser_delete(&parser);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  void drop_event() {
    if (has_event) {
      yaml_event_delete(&event);
    }
    has_event = false;
  }

  static int read_piece(void* data, unsigned char* buffer, std::size_t size, std::size_t* size_read) {
    auto& self = *static_cast<Parser*>(data);
    const std::size_t count = std::min({size, kReadPiece, self.text.size() - self.read});
    std::memcpy(buffer, self.text.data() + self.read, count);
    self.read += count;
    *size_read = count;
    return 1;
  }
};

// Turns the events of one document into nodes, without recursion.
struct YamlStream::Builder {
  YamlDocument document;
  std::unordered_map<std::string, const YamlNode*> anchors;
  std::vector<YamlNode*> open;

  YamlNode& add(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor) {
    YamlNode& node = document.nodes.emplace_back();
    node.kind = kind;
    node.at = position_of(event.start_mark);
    if (open.empty()) {
      document.root = &node;
    } else {
      open.back()->children.push_back(&node);
    }
    if (anchor != nullptr) {
      anchors[text_of(anchor)] = &node;  // Set at the start: a collection may refer to itself; the converter refuses.
    }
    return node;
  }

  void scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    YamlNode& node = add(YamlNode::Kind::scalar, event, data.anchor);
    node.value.assign(reinterpret_cast<const char*>(data.value), data.length);
    node.tag = text_of(data.tag);
    node.implicit = data.plain_implicit != 0;
    node.literal = data.style == YAML_LITERAL_SCALAR_STYLE;
  }

  // False when the anchor is unknown.
  bool alias(const yaml_event_t& event) {
    const std::string name = text_of(event.data.alias.anchor);
    const auto found = anchors.find(name);
    if (found == anchors.end()) {
      return false;
    }
    YamlNode& node = add(YamlNode::Kind::alias, event, nullptr);
    node.value = name;
    node.target = found->second;
    return true;
  }
};

YamlStream::YamlStream(std::string_view text, YamlLimits limits)
    : parser_(std::make_unique<Parser>(text)), text_(text), limits_(limits) {
  if (text.size() > limits.bytes) {
    fail("TooLarge", {1, 1},
         fmt::format("the text has {} bytes, at most {} are read", text.size(), limits.bytes));
  }
}

YamlStream::~YamlStream() = default;

void YamlStream::fail(std::string code, Position at, std::string message) {
  error_ = YamlError{std::move(code), at, std::move(message)};
  done_ = true;
}

bool YamlStream::pull() {
  Parser& p = *parser_;
  p.drop_event();
  if (yaml_parser_parse(&p.parser, &p.event) != 0) {
    p.has_event = true;
    return true;
  }
  Position at = position_of(p.parser.problem_mark);
  std::string problem = p.parser.problem != nullptr ? p.parser.problem : "cannot be read";
  if (p.parser.error == YAML_READER_ERROR) {
    const auto offset = std::min(p.parser.problem_offset, text_.size());
    const auto before = text_.substr(0, offset);
    const auto line_start = before.rfind('\n');
    at.line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    at.column = static_cast<int>(offset - (line_start == std::string_view::npos ? 0 : line_start + 1)) + 1;
  } else if (p.parser.context != nullptr) {
    problem = fmt::format("{} {} (which begins in line {})", problem, p.parser.context, p.parser.context_mark.line + 1);
  }
  fail("SyntaxError", at, problem);
  return false;
}

std::optional<YamlDocument> YamlStream::next() {
  Builder builder;
  const auto& event = parser_->event;
  while (!done_ && pull()) {
    switch (event.type) {
      case YAML_STREAM_END_EVENT:
        done_ = true;
        break;
      case YAML_SCALAR_EVENT:
        builder.scalar(event);
        break;
      case YAML_ALIAS_EVENT:
        if (!builder.alias(event)) {
          fail("UnknownAnchor", position_of(event.start_mark),
               fmt::format("no anchor &{0} stands before *{0}", text_of(event.data.alias.anchor)));
        }
        break;
      case YAML_MAPPING_START_EVENT:
        builder.open.push_back(&builder.add(YamlNode::Kind::mapping, event, event.data.mapping_start.anchor));
        break;
      case YAML_SEQUENCE_START_EVENT:
        builder.open.push_back(&builder.add(YamlNode::Kind::sequence, event, event.data.sequence_start.anchor));
        break;
      case YAML_MAPPING_END_EVENT:
      case YAML_SEQUENCE_END_EVENT:
        builder.open.pop_back();
        break;
      case YAML_DOCUMENT_END_EVENT:
        return std::move(builder.document);
      default:
        break;
    }
    if (!done_ && builder.open.size() > static_cast<std::size_t>(limits_.depth)) {
      fail("TooDeep", position_of(event.start_mark),
           fmt::format("collections are nested more than {} deep", limits_.depth));
    }
  }
  return std::nullopt;
}

}  // namespace gso
