// The field numbers are those of generated.proto in k8s.io/apimachinery (pkg/runtime and pkg/apis/meta/v1).
#include "k8sclient/value/protobuf_object.h"

#include <chrono>
#include <string>

#include "k8sclient/value/encoding.h"

namespace k8s {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

}  // namespace

bool is_protobuf(std::string_view object) {
  return object.starts_with(kMagic);
}

std::optional<ProtobufObject> open_protobuf(std::string_view object) {
  constexpr std::uint32_t kTypeMeta = protobuf::text(1);
  constexpr std::uint32_t kRaw = protobuf::text(2);
  constexpr std::uint32_t kKind = protobuf::text(2);  // Of the TypeMeta.
  if (!is_protobuf(object)) return std::nullopt;
  object.remove_prefix(kMagic.size());
  ProtobufObject out;
  const bool read = read_protobuf([&] {
    protobuf::each_field({object.data(), object.size()}, [&](std::uint32_t field, protozero::pbf_reader& value) {
      if (field == kTypeMeta) out.kind = protobuf::only_text(value.get_message(), kKind);
      if (field == kRaw) out.message = protobuf::view(value);
      return field == kTypeMeta || field == kRaw;
    });
  });
  if (!read) return std::nullopt;
  return out;
}

namespace protobuf {
namespace {

// Of metadata.
constexpr std::uint32_t kName = text(1);
constexpr std::uint32_t kNamespace = text(3);

// nullopt: none (an empty message), or one that JSON could not have.
std::optional<WallTime> read_time(protozero::pbf_reader time) {
  constexpr std::uint32_t kSeconds = number(1);  // metav1.Time has whole seconds: nanoseconds are never written.
  std::optional<std::int64_t> seconds;
  each_field(time, [&](std::uint32_t field, protozero::pbf_reader& value) {
    if (field == kSeconds) seconds = value.get_int64();
    return field == kSeconds;
  });
  constexpr std::int64_t kFirst = -62'135'596'800;  // Of the year 1.
  constexpr std::int64_t kLast = 253'402'300'799;   // Of the year 9999.
  if (!seconds || *seconds < kFirst || *seconds > kLast) return std::nullopt;
  return WallTime(std::chrono::seconds(*seconds));
}

// The API server takes any bytes here; all other texts that are kept it has checked to be ASCII. The result lives as
// long as both.
std::string_view any_text(std::string_view bytes, std::string& replaced) {
  if (is_valid_utf8(bytes)) return bytes;
  replaced = replace_invalid_utf8(std::string(bytes));
  return replaced;
}

OwnerReference read_owner(protozero::pbf_reader owner) {
  constexpr std::uint32_t kController = number(6);
  OwnerReference out;
  std::string replaced;
  each_field(owner, [&](std::uint32_t field, protozero::pbf_reader& value) {
    Interned* const wanted = field == text(1)   ? &out.kind
                             : field == text(3) ? &out.name
                             : field == text(4) ? &out.uid
                                                : nullptr;
    if (wanted != nullptr) *wanted = Interned(any_text(view(value), replaced));
    if (field == kController) out.controller = value.get_bool();
    return wanted != nullptr || field == kController;
  });
  return out;
}

}  // namespace

std::string_view only_text(protozero::pbf_reader message, std::uint32_t field) {
  std::string_view out;
  each_field(message, [&](std::uint32_t read, protozero::pbf_reader& value) {
    if (read == field) out = view(value);
    return read == field;
  });
  return out;
}

MapEntry read_map_entry(protozero::pbf_reader entry) {
  constexpr std::uint32_t kKey = text(1);
  constexpr std::uint32_t kValue = text(2);
  MapEntry out;
  each_field(entry, [&](std::uint32_t field, protozero::pbf_reader& value) {
    if (field != kKey && field != kValue) return false;
    (field == kKey ? out.key : out.value) = view(value);
    return true;
  });
  return out;
}

void read_meta(protozero::pbf_reader message, KeepsAnnotation keeps, ObjectMeta& meta) {
  constexpr std::uint32_t kUid = text(5);
  constexpr std::uint32_t kResourceVersion = text(6);
  constexpr std::uint32_t kGeneration = number(7);
  constexpr std::uint32_t kCreationTimestamp = text(8);
  constexpr std::uint32_t kDeletionTimestamp = text(9);
  constexpr std::uint32_t kLabels = text(11);
  constexpr std::uint32_t kAnnotations = text(12);
  constexpr std::uint32_t kOwnerReferences = text(13);
  std::string replaced;
  each_field(message, [&](std::uint32_t field, protozero::pbf_reader& value) {
    if (field == kName) {
      meta.name = view(value);
    } else if (field == kNamespace) {
      meta.ns = Interned(view(value));
    } else if (field == kUid) {
      meta.uid = view(value);
    } else if (field == kResourceVersion) {
      meta.resource_version = view(value);
    } else if (field == kGeneration) {
      meta.generation = value.get_int64();
    } else if (field == kCreationTimestamp) {
      meta.creation_timestamp = read_time(value.get_message()).value_or(WallTime{});
    } else if (field == kDeletionTimestamp) {
      meta.deletion_timestamp = read_time(value.get_message());
    } else if (field == kLabels) {
      const MapEntry label = read_map_entry(value.get_message());
      meta.labels.set(label.key, label.value);
    } else if (field == kAnnotations) {
      const MapEntry annotation = read_map_entry(value.get_message());
      if (keeps != nullptr && keeps(annotation.key))
        meta.annotations.set(annotation.key, any_text(annotation.value, replaced));
    } else if (field == kOwnerReferences) {
      meta.owners.push_back(read_owner(value.get_message()));
    } else {
      return false;
    }
    return true;
  });
  meta.labels.shrink_to_fit();
  meta.annotations.shrink_to_fit();
}

ObjectKey read_key(protozero::pbf_reader meta) {
  ObjectKey out;
  each_field(meta, [&](std::uint32_t field, protozero::pbf_reader& value) {
    if (field == kName) out.name = view(value);
    if (field == kNamespace) out.ns = view(value);
    return field == kName || field == kNamespace;
  });
  return out;
}

protozero::pbf_reader meta_of(std::string_view message) {
  constexpr std::uint32_t kMetadata = text(1);
  protozero::pbf_reader object(message.data(), message.size());
  while (object.next()) {
    if (object.tag_and_type() == kMetadata) return object.get_message();
    object.skip();
  }
  return {};
}

}  // namespace protobuf
}  // namespace k8s
