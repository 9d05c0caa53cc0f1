// Watches of Nodes as a kube-apiserver 1.36.3 has written them, in JSON and in protobuf: testdata/.
//   node_watch     a WatchList of one Node: ADDED and the bookmark that ends it
//   expired_watch  a watch from resourceVersion 1: an ERROR with the Status of 410
//   refused_watch  the answer to resourceVersion "abc", HTTP 500: a Status without a watch
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace k8s::test {

inline std::string recorded(const std::string& name) {
  const char* root = std::getenv("GSO_SOURCE_DIR");
  const std::string path = std::string(root == nullptr ? "." : root) + "/tests/k8sclient/testdata/" + name;
  std::ifstream file(path, std::ios::binary);
  if (!file) ADD_FAILURE() << path << " cannot be read; GSO_SOURCE_DIR names the source";
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace k8s::test
