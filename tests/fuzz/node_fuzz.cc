// Any bytes as a Node in protobuf: no crash, and what is kept can be written as JSON. The envelope is put around bytes
// that have none, so that mutations reach the fields.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "k8sclient/value/protobuf_object.h"
#include "reconcilers/model/project.h"
#include "tests/k8sclient/protobuf_envelope.h"

namespace {

// Throws where it is not UTF-8.
void write(std::string_view text) {
  static_cast<void>(nlohmann::json(std::string(text)).dump());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (!k8s::is_protobuf(text)) text = k8s::test::envelope("Node", text);
  const auto node = gso::project_node(text);
  if (!node) return 0;
  for (const auto& [key, value] : node->meta.annotations) write(value.view());
  for (const auto& owner : node->meta.owners) write(owner.name.view());
  return 0;
}
