# The precompiled headers: what most files of a room include. A file includes what it uses all the same: the fuzz targets
# are compiled without.
#
# With GSO_UNITY they also hold fleet/pass.h, which has most of what planners and commands read. Without it they hold the
# libraries alone, so that a changed header of the model rebuilds only what includes it.
set(planner cmake/precompiled.h)
set(runtime cmake/precompiled_asio.h)
if(GSO_UNITY)
  list(APPEND planner reconcilers/fleet/pass.h)
  list(APPEND runtime reconcilers/fleet/pass.h)
endif()
set(planner_depends fmt::fmt nlohmann_json::nlohmann_json simdjson::simdjson yaml-cpp)
set(runtime_depends ${planner_depends} gso::asio)
gso_headers(planner HEADERS ${planner} DEPENDS ${planner_depends})
gso_headers(client HEADERS cmake/precompiled_asio.h DEPENDS ${runtime_depends})
gso_headers(runtime HEADERS ${runtime} DEPENDS ${runtime_depends})
if(GSO_TESTS)
  gso_headers(planner_test HEADERS ${planner} gmock/gmock.h gtest/gtest.h DEPENDS ${planner_depends} GTest::gmock)
  gso_headers(runtime_test HEADERS ${runtime} gmock/gmock.h gtest/gtest.h DEPENDS ${runtime_depends} GTest::gmock)
endif()
