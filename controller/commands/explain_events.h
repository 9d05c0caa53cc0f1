// The Events of an object, for `explain`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace gso {

struct SeenEvent {
  std::string when;  // When it was seen last, as the API server writes times: they sort as texts.
  std::string kind;  // Of the object.
  std::string reason;
  std::string message;
};
// The Events about objects of that namespace and name, of any kind, in no order. Errors: they cannot be listed.
boost::asio::awaitable<k8s::Result<std::vector<SeenEvent>>> list_events(k8s::Reader* client, k8s::ObjectKey object);

}  // namespace gso
