// Any bytes as a Node in protobuf: no crash, and what is kept can be written as JSON. The envelope is put around bytes
// that have none, so that mutations reach the fields.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "k8sclient/value/protobuf_object.h"
#include "reconcilers/model/project.h"

namespace {

std::string envelope(const std::string& message) {
  std::string type;
  protozero::pbf_writer(type).add_string(2, "Node");
  std::string unknown;
  protozero::pbf_writer writer(unknown);
  writer.add_message(1, type);
  writer.add_bytes(2, message);
  return std::string("k8s\0", 4) + unknown;
}

// Throws where it is not UTF-8.
void write(std::string_view text) {
  static_cast<void>(nlohmann::json(std::string(text)).dump());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (!k8s::is_protobuf(text)) text = envelope(text);
  const auto node = gso::project_node(text);
  if (!node) return 0;
  for (const auto& [key, value] : node->meta.annotations) write(value.view());
  for (const auto& owner : node->meta.owners) write(owner.name.view());
  return 0;
}
