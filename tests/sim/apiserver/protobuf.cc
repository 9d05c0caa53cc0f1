// Field numbers to names, by the schema's types.
#include "tests/sim/apiserver/protobuf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/builtin_types.h"

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;

constexpr std::string_view kMagic("k8s\0", 4);

// --- The wire format.

struct WireField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;   // 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
  std::uint64_t value = 0;  // Of types 0, 1 and 5.
  std::string_view bytes;   // Of type 2.
};

class Wire {
 public:
  explicit Wire(std::string_view rest) : rest_(rest) {}
  // nullopt at the end; throws std::runtime_error on bytes that are no message.
  std::optional<WireField> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t tag = varint();
    WireField field{static_cast<std::uint32_t>(tag >> 3U), static_cast<std::uint32_t>(tag & 7U), 0, {}};
    switch (field.type) {
      case 0:
        field.value = varint();
        return field;
      case 1:
        field.value = fixed(8);
        return field;
      case 2:
        field.bytes = take(varint());
        return field;
      case 5:
        field.value = fixed(4);
        return field;
      default:
        throw std::runtime_error(fmt::format("proto: illegal wireType {}", field.type));
    }
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("proto: integer overflow");
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw std::runtime_error("unexpected EOF");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  std::uint64_t fixed(std::size_t size) {
    const std::string_view bytes = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i > 0; --i) value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
    return value;
  }
  std::string_view rest_;
};

// --- Field numbers.

struct Message {
  struct Slot {
    std::string name;  // Empty: a message whose fields JSON has inline.
    std::shared_ptr<Message> inlined;
  };
  std::map<std::uint32_t, Slot> slots;
};

// "name=1 2(a=1 b=2)" up to the end or a closing parenthesis, which stays.
Message read_message(std::string_view& text) {
  Message out;
  while (!text.empty() && text.front() != ')') {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    const auto end = text.find_first_of("=(");
    const std::string head(text.substr(0, end));
    const bool inlined = text.at(end) == '(';
    text.remove_prefix(end + 1);
    if (inlined) {
      auto fields = std::make_shared<Message>(read_message(text));
      text.remove_prefix(1);
      out.slots[static_cast<std::uint32_t>(std::stoul(head))] = {"", std::move(fields)};
      continue;
    }
    const auto digits = std::min(text.find_first_of(" )"), text.size());
    out.slots[static_cast<std::uint32_t>(std::stoul(std::string(text.substr(0, digits))))] = {head, nullptr};
    text.remove_prefix(digits);
  }
  return out;
}

const Message& message_of(const std::string& type) {
  static const std::map<std::string, Message> kMessages = [] {
    std::map<std::string, Message> out;
    std::istringstream in(kFieldNumbers);
    std::string entry;
    const auto flush = [&] {
      const auto space = entry.find(' ');
      if (space == std::string::npos) return;
      std::string_view fields = std::string_view(entry).substr(space);
      out[entry.substr(0, space)] = read_message(fields);
    };
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(' ')) {
        flush();
        entry.clear();
      }
      entry += line;
    }
    flush();
    return out;
  }();
  static const Message kUnknown;
  const auto found = kMessages.find(type);
  return found == kMessages.end() ? kUnknown : found->second;
}

// --- Values.

void read_fields(const Message& message, const Schema& schema, std::string_view bytes, json& out);
json read_value(const Schema& schema, const WireField& field);

// {1: seconds, 2: nanos}; nothing at all is Go's zero time, which JSON has as null.
json read_time(const Schema& schema, std::string_view bytes) {
  std::int64_t seconds = 0;
  std::int64_t nanos = 0;
  Wire wire(bytes);
  while (const auto field = wire.next())
    (field->number == 1 ? seconds : nanos) = static_cast<std::int64_t>(field->value);
  if (seconds == 0 && nanos == 0) return nullptr;
  const k8s::WallTime time{std::chrono::seconds(seconds) +
                           std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(nanos))};
  return schema.type == Type::micro_time ? k8s::format_micro_time(time) : k8s::format_time(time);
}

json read_int_or_string(std::string_view bytes) {
  WireField parts[4];
  Wire wire(bytes);
  while (const auto field = wire.next())
    if (field->number < 4) parts[field->number] = *field;
  if (parts[1].value == 1) return std::string(parts[3].bytes);
  return static_cast<std::int32_t>(parts[2].value);
}

// The first field of a message that wraps one value: Quantity, RawExtension, FieldsV1.
std::string_view wrapped(std::string_view bytes) {
  Wire wire(bytes);
  while (const auto field = wire.next())
    if (field->number == 1) return field->bytes;
  return {};
}

void append(const Schema& element, const WireField& field, json& list) {
  const bool number = element.type == Type::int32 || element.type == Type::int64 || element.type == Type::boolean;
  if (!number || field.type != 2) {
    list.push_back(read_value(element, field));
    return;
  }
  for (Wire packed(field.bytes); !packed.empty();)
    list.push_back(read_value(element, {field.number, 0, packed.varint(), {}}));
}

void add_entry(const Schema& element, std::string_view bytes, json& map) {
  std::string key;
  WireField value{2, 2, 0, {}};
  Wire wire(bytes);
  while (const auto field = wire.next()) {
    if (field->number == 1) key = field->bytes;
    if (field->number == 2) value = *field;
  }
  if (element.type != Type::list) {
    map[key] = read_value(element, value);
    return;
  }
  json items = json::array();  // Protobuf knows no map of lists: a message around them.
  Wire inner(value.bytes);
  while (const auto item = inner.next()) append(*element.element, *item, items);
  map[key] = std::move(items);
}

json read_value(const Schema& schema, const WireField& field) {
  switch (schema.type) {
    case Type::object: {
      json out = json::object();
      read_fields(message_of(schema.name), schema, field.bytes, out);
      return out;
    }
    case Type::string:
      return std::string(field.bytes);
    case Type::bytes:
      return k8s::base64_encode(field.bytes);
    case Type::int32:
      return static_cast<std::int32_t>(field.value);
    case Type::int64:
      return static_cast<std::int64_t>(field.value);
    case Type::boolean:
      return field.value != 0;
    case Type::number: {
      double number = 0;
      std::memcpy(&number, &field.value, sizeof number);
      return number;
    }
    case Type::quantity:
      return std::string(wrapped(field.bytes));
    case Type::time:
    case Type::micro_time:
      return read_time(schema, field.bytes);
    case Type::int_or_string:
      return read_int_or_string(field.bytes);
    case Type::any: {
      json parsed = json::parse(wrapped(field.bytes), nullptr, false);
      return parsed.is_discarded() ? json(nullptr) : parsed;
    }
    case Type::list:
    case Type::map:
      break;  // Repeated fields: read_fields.
  }
  return nullptr;
}

void read_fields(const Message& message, const Schema& schema, std::string_view bytes, json& out) {
  Wire wire(bytes);
  while (const auto field = wire.next()) {
    const auto slot = message.slots.find(field->number);
    if (slot == message.slots.end()) continue;  // Of a newer version.
    if (slot->second.inlined != nullptr) {
      read_fields(*slot->second.inlined, schema, field->bytes, out);
      continue;
    }
    const Schema* member = schema.member(slot->second.name);
    if (member == nullptr) continue;
    json& place = out[slot->second.name];
    if (member->type == Type::list) {
      if (place.is_null()) place = json::array();
      append(*member->element, *field, place);
    } else if (member->type == Type::map) {
      if (place.is_null()) place = json::object();
      add_entry(*member->element, field->bytes, place);
    } else {
      place = read_value(*member, *field);
    }
  }
}

const Schema* schema_of(const std::string& kind, const Schema* of_resource) {
  if (kind == "DeleteOptions") return builtin_schema("meta.DeleteOptions");
  if (kind == "Eviction") return builtin_schema("policy.Eviction");
  if (kind == "Binding") return builtin_schema("core.Binding");
  return of_resource;
}

json read_envelope(std::string_view body, const Schema* schema) {
  json object = json::object();
  std::string_view raw;
  Wire envelope(body);
  while (const auto field = envelope.next()) {
    if (field->number == 2) raw = field->bytes;
    if (field->number != 1) continue;
    Wire type_meta(field->bytes);
    while (const auto part = type_meta.next())
      if (part->number == 1 || part->number == 2) object[part->number == 1 ? "apiVersion" : "kind"] = part->bytes;
  }
  schema = schema_of(object.value("kind", ""), schema);
  if (schema != nullptr) read_fields(message_of(schema->name), *schema, raw, object);
  return object;
}

}  // namespace

bool is_protobuf(std::string_view content_type) {
  return content_type.starts_with("application/vnd.kubernetes.protobuf");
}

std::expected<json, std::string> decode_protobuf(std::string_view body, const Schema* schema) {
  if (!body.starts_with(kMagic))
    return std::unexpected("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  try {
    return read_envelope(body.substr(kMagic.size()), schema);
  } catch (const std::runtime_error& error) {
    return std::unexpected(error.what());
  }
}

}  // namespace gso::sim
