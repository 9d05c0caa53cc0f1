// KAI on a scene's fleet: what of it stands there decides whether a node may be rolled to replicas (S8).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "tests/sim/story/scene.h"

namespace gso::sim {

// KAI's definitions, its configuration, and a fraction pod with its reservation on node `shared`, a BindRequest in
// flight to node `bound_soon`. Before the operator is installed.
boost::asio::awaitable<void> bring_kai(Scene* scene, std::string shared, std::string bound_soon);
// Another pod of KAI's is about to be bound to that node.
boost::asio::awaitable<void> bind_soon(Scene* scene, std::string node);
// Its pods and requests end.
boost::asio::awaitable<void> end_kai_pods(Scene* scene);

}  // namespace gso::sim
