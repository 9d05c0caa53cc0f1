// A message in the envelope in which the API server writes protobuf (k8sclient/value/protobuf_object.h).
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>

namespace k8s::test {

inline std::string envelope(const std::string& kind, const std::string& message) {
  std::string type;
  protozero::pbf_writer(type).add_string(2, kind);
  std::string unknown;
  protozero::pbf_writer writer(unknown);
  writer.add_message(1, type);
  writer.add_bytes(2, message);
  return std::string("k8s\0", 4) + unknown;
}

}  // namespace k8s::test
