// get, list and watch.
#pragma once

#include <memory>
#include <variant>

#include "k8sclient/clock.h"
#include "tests/sim/apiserver/representation.h"
#include "tests/sim/apiserver/request.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/status.h"
#include "tests/sim/apiserver/storage.h"
#include "tests/sim/apiserver/watch.h"

namespace gso::sim {

// What a list or a deletecollection selects.
struct Selection {
  LabelSelector labels;
  FieldSelector fields;
  [[nodiscard]] bool everything() const { return labels.empty() && fields.requirements().empty(); }
  [[nodiscard]] bool matches(const Object& object) const { return labels.matches(object) && fields.matches(object); }
};
[[nodiscard]] Outcome<Selection> parse_selection(const Resource& resource, const RequestInfo& info);

class Reader {
 public:
  Reader(Storage& storage, WatchHub& hub, k8s::Clock& clock) : storage_(storage), hub_(hub), clock_(clock) {}

  [[nodiscard]] Outcome<ObjectPtr> get(const Resource& resource, const RequestInfo& info,
                                       const RequestContext& context) const;
  [[nodiscard]] Outcome<ListPage> list(const Resource& resource, const RequestInfo& info,
                                       const RequestContext& context) const;
  [[nodiscard]] Outcome<std::shared_ptr<WatchStream>> watch(const ResourcePtr& resource, const RequestInfo& info,
                                                            const Format& format, const RequestContext& context);

 private:
  Storage& storage_;
  WatchHub& hub_;
  k8s::Clock& clock_;
};

}  // namespace gso::sim
