// The field numbers are those of generated.proto in k8s.io/apimachinery (pkg/apis/meta/v1).
#include "k8sclient/api/protobuf_status.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "k8sclient/value/error.h"
#include "k8sclient/value/protobuf_object.h"
#include "k8sclient/value/utf8.h"

namespace k8s {
namespace {

namespace pb = protobuf;
using Json = nlohmann::json;
using protozero::pbf_reader;

std::string utf8(std::string_view bytes) {
  return replace_invalid_utf8(std::string(bytes));
}

Json read_cause(pbf_reader cause) {
  constexpr std::uint32_t kReason = pb::text(1);
  constexpr std::uint32_t kMessage = pb::text(2);
  constexpr std::uint32_t kField = pb::text(3);
  Json out = Json::object();
  while (cause.next()) {
    switch (cause.tag_and_type()) {
      case kReason:
        out["reason"] = utf8(pb::view(cause));
        break;
      case kMessage:
        out["message"] = utf8(pb::view(cause));
        break;
      case kField:
        out["field"] = utf8(pb::view(cause));
        break;
      default:
        cause.skip();
    }
  }
  return out;
}

Json read_details(pbf_reader details) {
  constexpr std::uint32_t kCauses = pb::text(4);
  constexpr std::uint32_t kRetryAfterSeconds = pb::number(5);
  Json out = Json::object();
  Json causes = Json::array();
  while (details.next()) {
    switch (details.tag_and_type()) {
      case kCauses:
        if (causes.size() < kMostCauses) {
          causes.push_back(read_cause(details.get_message()));
        } else {
          details.skip();
        }
        break;
      case kRetryAfterSeconds:
        if (const std::int32_t seconds = details.get_int32(); seconds > 0) {
          out["retryAfterSeconds"] = static_cast<std::uint64_t>(seconds);
        }
        break;
      default:
        details.skip();
    }
  }
  out["causes"] = std::move(causes);
  return out;
}

Json read_status(std::string_view message) {
  constexpr std::uint32_t kMessage = pb::text(3);
  constexpr std::uint32_t kReason = pb::text(4);
  constexpr std::uint32_t kDetails = pb::text(5);
  constexpr std::uint32_t kCode = pb::number(6);
  pbf_reader status(message.data(), message.size());
  Json out = {{"kind", "Status"}};
  while (status.next()) {
    switch (status.tag_and_type()) {
      case kMessage:
        out["message"] = utf8(pb::view(status));
        break;
      case kReason:
        out["reason"] = utf8(pb::view(status));
        break;
      case kDetails:
        out["details"] = read_details(status.get_message());
        break;
      case kCode:
        out["code"] = status.get_int32();
        break;
      default:
        status.skip();
    }
  }
  return out;
}

}  // namespace

nlohmann::json read_protobuf_status(std::string_view object) {
  const auto opened = open_protobuf(object);
  if (!opened || opened->kind != "Status") return nullptr;
  Json status;
  if (!read_protobuf([&] { status = read_status(opened->message); })) return nullptr;
  return status;
}

}  // namespace k8s
