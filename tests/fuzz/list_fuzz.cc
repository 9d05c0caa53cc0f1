// Any bytes as a page of a list: no crash, a complete page has a resourceVersion, and an error of the sink is the
// page's. The first byte says which item the sink refuses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "k8sclient/api/object_json.h"

namespace {

class Items final : public k8s::ItemSink {
 public:
  explicit Items(int refused) : left_(refused) {}
  void restart() override { std::abort(); }  // The client's business.
  k8s::Result<void> item(std::string_view json) override {
    if (refused) std::abort();  // The list has ended.
    static_cast<void>(k8s::read_object_key(json));
    if (left_-- > 0) return {};
    refused = true;
    return k8s::fail(k8s::Reason::cancelled, "refused");
  }
  bool refused = false;

 private:
  int left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  Items items(data[0]);
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const k8s::Result<k8s::ListPage> page = k8s::decode_list_page(body, &items);
  if (page && (page->resource_version.empty() || items.refused)) std::abort();
  if (!page && (page.error().reason == k8s::Reason::cancelled) != items.refused) std::abort();
  return 0;
}
