// Pod train of namespace team, about which explain POD is asked.
#pragma once

#include <string>

namespace gso {

// Its container c has these limits; `spec` ends with a comma, `meta` begins with one, or they are empty.
inline std::string pod(const std::string& limits, const std::string& spec = "", const std::string& meta = "",
                       const std::string& status = R"("phase":"Pending")") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"u1")" + meta +
         R"(},"spec":{"schedulerName":"default-scheduler",)" + spec +
         R"("containers":[{"name":"c","image":"i","resources":{"limits":{)" + limits + R"(}}}]},"status":{)" + status +
         "}}";
}

// `meta` of a pod that Deployment web made.
inline constexpr const char* kOfDeployment =
    R"(,"labels":{"pod-template-hash":"5d9"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d9","uid":"r","controller":true}])";

}  // namespace gso
