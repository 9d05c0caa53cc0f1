// libyaml's events to node trees.
#include "reconcilers/profile/yaml_node.h"

#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/yaml_syntax_error.h"

namespace gso {
namespace {

// Each means reading the text anew.
constexpr int kMaxRetries = 16;

Position position_of(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

// The lines that end in U+0085, U+2028 or U+2029.
std::vector<int> odd_breaks(std::string_view text) {
  std::vector<int> lines;
  const bool any = text.find("\xc2\x85") != std::string_view::npos || text.find("\xe2\x80") != std::string_view::npos;
  int line = 1;
  for (std::size_t at = 0; any && at < text.size();) {
    const std::size_t length = break_length(text, at);
    if (length > 0) {
      if (text[at] != '\r' && text[at] != '\n') {
        lines.push_back(line);
      }
      ++line;
    }
    at += std::max<std::size_t>(length, 1);
  }
  return lines;
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
  Builder(const YamlStream* of, YamlItems* to) : stream(of), items(to) {}

  YamlDocument document;
  std::unordered_map<std::string, const YamlNode*> anchors;
  std::vector<YamlNode*> open;
  const YamlStream* stream = nullptr;
  int flow_depth = 0;  // Open collections within the outermost [] or {}.
  YamlItems* items = nullptr;
  const YamlNode* list = nullptr;  // The root's `items`, if somebody wants them.
  std::size_t before_item = 0;     // Nodes before the item that is being read.
  bool anchor_in_item = false;

  void restart() {
    *this = Builder(stream, items);
    if (items != nullptr) {
      items->restart();
    }
  }

  YamlNode& add(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor) {
    YamlNode& node = document.nodes.emplace_back();
    node.kind = kind;
    node.in_text = position_of(event.start_mark);
    node.at = stream->shown(node.in_text);
    if (open.empty()) {
      document.root = &node;
    } else {
      open.back()->children.push_back(&node);
    }
    if (anchor != nullptr) {
      anchors[text_of(anchor)] = &node;  // Set at the start: a collection may refer to itself; the converter refuses.
      anchor_in_item = true;
    }
    return node;
  }

  void scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    YamlNode& node = add(YamlNode::Kind::scalar, event, data.anchor);
    node.value = release_held({reinterpret_cast<const char*>(data.value), data.length});
    node.tag = text_of(data.tag);
    node.implicit = data.plain_implicit != 0;
    node.literal = data.style == YAML_LITERAL_SCALAR_STYLE;
    node.folded = data.style == YAML_FOLDED_SCALAR_STYLE;
  }

  void collection(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor, bool flow) {
    if (open.size() == 2 && open.back() == list) {
      before_item = document.nodes.size();
      anchor_in_item = false;
    }
    open.push_back(&add(kind, event, anchor));
    flow_depth += flow || flow_depth > 0 ? 1 : 0;
    if (items != nullptr && open.size() == 2 && kind == YamlNode::Kind::sequence && is_value_of("items")) {
      list = open.back();
    }
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
      items->item(*closed);
      open.back()->children.pop_back();
      // Nodes that a later alias can refer to stay.
      while (!anchor_in_item && document.nodes.size() > before_item) {
        document.nodes.pop_back();
      }
    }
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
    : text_(hold_marks(text.substr(0, limits.bytes))),
      parser_(std::make_unique<Parser>(text_)),
      limits_(limits),
      odd_breaks_(odd_breaks(text_)) {
  if (text.size() > limits.bytes) {
    fail("TooLarge", {1, 1}, fmt::format("the text has {} bytes; at most {} are allowed", text.size(), limits.bytes));
  }
}

YamlStream::~YamlStream() = default;

void YamlStream::fail(std::string code, Position at, std::string message) {
  error_ = YamlError{std::move(code), shown(at), std::move(message), {}, ""};
  done_ = true;
}

Position YamlStream::shown(Position at) const {
  const auto odd = std::lower_bound(odd_breaks_.begin(), odd_breaks_.end(), at.line) - odd_breaks_.begin();
  return {at.line - static_cast<int>(odd) + limits_.first_line - 1, at.column};
}

bool YamlStream::pull() {
  Parser& p = *parser_;
  p.drop_event();
  p.has_event = yaml_parser_parse(&p.parser, &p.event) != 0;
  return p.has_event;
}

bool YamlStream::retry(std::size_t offset, Stumble stumble) {
  auto held = hold(text_, offset, stumble);
  if (!held || ++retries_ > kMaxRetries) {
    return false;
  }
  text_ = *std::move(held);
  parser_ = std::make_unique<Parser>(text_);
  for (int skipped = 0; skipped < documents_;) {
    if (!pull()) {
      return false;
    }
    skipped += parser_->event.type == YAML_DOCUMENT_END_EVENT ? 1 : 0;
  }
  return true;
}

bool YamlStream::retry_after_error() {
  const yaml_parser_t& p = parser_->parser;
  if (p.error != YAML_SCANNER_ERROR || p.problem == nullptr) {
    return false;
  }
  const Stumble stumble = stumble_of(p.problem, p.context == nullptr ? "" : p.context);
  const Position at = position_of(p.problem_mark);
  return stumble != Stumble::none && retry(offset_of(text_, at), stumble);
}

bool YamlStream::retry_after_scalar(const Builder& builder) {
  const YamlNode& node = builder.document.nodes.back();
  if (builder.flow_depth == 0) {
    return false;
  }
  if (!node.tag.empty()) {
    const auto offset = tag_running_into_indicator(text_, node.in_text);
    return offset && retry(*offset, Stumble::tag);
  }
  if (parser_->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && node.value.find('?') != std::string::npos) {
    if (auto comment = explain_json_comment(text_, offset_of(text_, node.in_text))) {
      fail(std::move(comment->code), comment->at, std::move(comment->message));
      return false;
    }
    fail("SyntaxError", node.in_text,
         fmt::format("a '?' ends a value inside [] and {{}}; put \"{}\" in quotes", shown_value(node.value)));
  }
  return false;
}

void YamlStream::syntax_error(const Builder& builder) {
  const yaml_parser_t& p = parser_->parser;
  const std::string problem = p.problem != nullptr ? p.problem : "cannot be read";
  if (p.error == YAML_READER_ERROR) {
    fail("SyntaxError", place_of(text_, p.problem_offset), explain_refused_character(text_, problem));
    return;
  }
  YamlProblem found;
  found.problem = problem;
  found.context = p.context != nullptr ? p.context : "";
  found.at = position_of(p.problem_mark);
  found.context_at = position_of(p.context_mark);
  if (builder.flow_depth > 0) {
    found.flow = builder.open[builder.open.size() - static_cast<std::size_t>(builder.flow_depth)]->in_text;
  }
  const auto shown_place = [this](Position at) { return shown(at); };
  error_ = explain_syntax_error(text_, found, shown_place);
  error_->at = shown(error_->at);
  error_->cause = error_->cause.line > 0 ? shown(error_->cause) : Position{};
  done_ = true;
}

namespace {

// Of a document's %YAML line, if it has one.
bool is_known_version(const yaml_version_directive_t* version) {
  return version == nullptr || (version->major == 1 && version->minor == 1);
}

}  // namespace

std::optional<YamlDocument> YamlStream::next(YamlItems* items) {
  Builder builder(this, items);
  while (!done_) {
    if (!pull()) {
      if (retry_after_error()) {
        builder.restart();
        continue;
      }
      syntax_error(builder);
      break;
    }
    const yaml_event_t& event = parser_->event;  // Of the parser of this round: a retry makes a new one.
    switch (event.type) {
      case YAML_STREAM_END_EVENT:
        done_ = true;
        break;
      case YAML_SCALAR_EVENT:
        builder.scalar(event);
        if (retry_after_scalar(builder)) {
          builder.restart();
          continue;
        }
        break;
      case YAML_ALIAS_EVENT:
        if (!builder.alias(event)) {
          fail("UnknownAnchor", position_of(event.start_mark),
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
        if (!is_known_version(event.data.document_start.version_directive)) {
          fail("SyntaxError", position_of(event.start_mark), "only %YAML 1.1 is supported; remove the %YAML line");
        }
        break;
      case YAML_DOCUMENT_END_EVENT:
        ++documents_;
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
