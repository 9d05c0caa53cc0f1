// How objects are written into an answer: as they are, as PartialObjectMetadata, or as rows of a Table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/status.h"
#include "tests/sim/apiserver/storage.h"

namespace gso::sim {

struct Format {
  enum class As { object, metadata, table } as = As::object;
  std::string include_object = "Metadata";  // Of tables: None, Metadata, Object.
  bool yaml = false;  // Asked for YAML: answered with JSON, which is YAML, under YAML's content type.
};

// From the Accept header; 406 when nothing in it can be served.
[[nodiscard]] Outcome<Format> choose_format(std::string_view accept, std::string_view include_object);

// The text of one object as the resource's version shows it.
[[nodiscard]] std::string served_text(const Resource& resource, const Object& object);
// The same, parsed.
[[nodiscard]] nlohmann::json served_json(const Resource& resource, const Object& object);
// From the stored form as JSON.
[[nodiscard]] nlohmann::json served_json(const Resource& resource, nlohmann::json stored);

// One object in that format, without a newline. `now` is for the AGE column.
[[nodiscard]] std::string render_object(const Resource& resource, const Object& object, const Format& format,
                                        k8s::WallTime now, bool with_columns = true);

struct ListPage {
  std::vector<ObjectPtr> objects;
  std::uint64_t revision = 0;
  std::string continue_token;
  std::int64_t remaining = -1;  // Below 0: not said.
};
[[nodiscard]] std::string render_list(const Resource& resource, const ListPage& page, const Format& format,
                                      k8s::WallTime now);

}  // namespace gso::sim
