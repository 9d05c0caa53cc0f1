// The validating webhook's side of HTTP: AdmissionReviews in, AdmissionReviews out (admission.k8s.io/v1). Answers read
// memory only and change nothing, so a dry run is answered like any other request, and every replica can answer.
//
// What cannot be read is answered with 400: the API server then does what `failurePolicy` says, which is Ignore.
//
// Anybody who can open a connection can send a review of any size: nothing of its object is materialised before its
// kind, its name and its size say that it is to be judged (judged_kind() in the .cc).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/object.h"
#include "reconcilers/kai/pod_annotations.h"

namespace gso {

// The path in the webhook's clientConfig.
inline constexpr std::string_view kAdmissionPath = "/validate";
// An object and the stored one, of at most 1.5 MiB each (etcd's limit) in the API server's JSON, which can escape them.
// Of a review above HttpServerOptions::body_kept only the beginning is kept: it says what the review is about.
inline constexpr std::size_t kMostAdmissionBytes = std::size_t{8} << 20;

// Milliseconds of the one thread, by who writes the objects: a tenant's pods cost no check of a profile. Together they
// are at most half of the thread's time, and a second at once.
struct AdmissionTime {
  k8s::TokenBucket config_maps{200, 400};
  k8s::TokenBucket policies{150, 300};
  k8s::TokenBucket workloads{150, 300};  // Of anybody: also the reading of what is not judged.
};

struct AdmissionParts {
  // Whether a device plugin reads its profiles from this ConfigMap; others are allowed unseen.
  std::function<bool(const k8s::ObjectKey&)> holds_profiles;
  // Who uses a key of that ConfigMap (AdmissionRules::key_users). Asked for at most once in a review, and only if a key
  // is removed: it reads all nodes.
  std::function<std::function<std::string(const std::string& key)>(const k8s::ObjectKey& config_map)> key_users;
  std::function<PodRules()> pod_rules;  // As of now.
  bool refuse_pods = false;             // AdmissionRules::refuse_pods
  // Answers name nodes and policies: only clients whose certificate has been verified get one.
  bool clients_only = false;
  std::shared_ptr<Metrics> metrics;
  // With it objects are judged while their kind has time left; further ones are allowed with a warning. Must outlive
  // the handler. Null: as many as are asked for.
  k8s::Clock* clock = nullptr;
  std::shared_ptr<AdmissionTime> time = std::make_shared<AdmissionTime>();
};

// The answer to one AdmissionReview. `cut`: the body is only its beginning.
[[nodiscard]] HttpAnswer answer_review(std::string_view body, const AdmissionParts& parts, bool cut = false);

// A handler for HttpServer: POST kAdmissionPath, and nothing else.
[[nodiscard]] HttpHandler make_admission_handler(AdmissionParts parts);

}  // namespace gso
