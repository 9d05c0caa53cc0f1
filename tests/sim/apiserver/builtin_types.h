// The tables of built-in types that schema.cc and protobuf.cc parse.
#pragma once

namespace gso::sim {

extern const char* const kCoreTypes;
extern const char* const kGroupTypes;
extern const char* const kFieldNumbers;

}  // namespace gso::sim
