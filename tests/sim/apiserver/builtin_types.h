// The tables of built-in types that schema.cc parses.
#pragma once

namespace gso::sim {

extern const char* const kCoreTypes;
extern const char* const kGroupTypes;

}  // namespace gso::sim
