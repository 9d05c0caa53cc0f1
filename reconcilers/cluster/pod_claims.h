// Which pods among manifests have a ResourceClaim for a GPU: a claim can be for a device of any driver. In doubt it is
// for a GPU.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "k8sclient/value/object.h"

namespace gso {

class PodClaims {
 public:
  // Whether it is a kind that this class reads.
  [[nodiscard]] static bool reads(std::string_view kind);
  // A ResourceClaim, ResourceClaimTemplate or DeviceClass.
  void add(std::string_view kind, std::string_view json);
  // The pod's JSON; without its claims if each of them is known to be for other devices. After every object was added.
  [[nodiscard]] std::string without_other_claims(std::string_view pod) const;

 private:
  // What a claim asks for, and what it got.
  struct Claim {
    std::set<std::string> classes;
    std::set<std::string> drivers;  // Of its allocation; empty: it has none.
    bool unclear = false;           // A request names no class.
  };
  static Claim read(const nlohmann::json& spec, const nlohmann::json& status);
  [[nodiscard]] bool is_for_gpu(const Claim& claim) const;
  [[nodiscard]] const Claim* claim_of(const nlohmann::json& pod, const nlohmann::json& entry) const;

  std::map<k8s::ObjectKey, Claim> claims_;
  std::map<k8s::ObjectKey, Claim> templates_;
  std::set<std::string> gpu_classes_;  // DeviceClasses that name the GPUs' driver.
};

}  // namespace gso
