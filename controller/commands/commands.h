// The subcommands but `status` and `rollout`: what each takes, what it does on a given client, and the value that the
// command line is made of (cli/cli.h).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/shared/print.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "k8sclient/api/client.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/time.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Subcommand;

// --- What runs in pods: `run`, the operator against a real cluster, and `mps-daemon`.

// Runs until SIGTERM or SIGINT (a second one ends the process at once). Exit status: 0 after a clean stop, 1 when the
// operator ended by itself, 2 when the connection or the settings are wrong.
[[nodiscard]] int run_controller(Options options, std::ostream& err);

// --- `lint FILE…`: what the plugin, GFD and the MPS daemon would say about profiles, and what they would silently
// ignore.

struct LintOptions {
  std::vector<std::string> files = {};  // "-" is stdin; a folder stands for the files below it (expand_folders()).
  bool json = false;
  bool sarif = false;
  bool codes = false;  // Only list every code, with what it means and what to do. No file is read.
  std::optional<bool> kai_gpu_sharing = std::nullopt;  // Whether KAI's GPU sharing is on, for Pods.
  std::int64_t mps_user = PartitioningSettings().mps_user;
};

// Exit status: 0 without errors, 1 with a diagnostic of severity error, 2 when a file cannot be read.
[[nodiscard]] int run_lint(const LintOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

// --- `expect`: the labels, the allocatable and the MPS limits that a profile must produce on a node.

struct ExpectOptions {
  std::string config = {};   // Profile document, or a ConfigMap. "-" is stdin, here and below.
  std::string key = {};      // Of that ConfigMap; can be empty if it has one key.
  std::string devices = {};  // JSON list of GPUs. Exactly one of `devices` and `node` is given.
  std::string node = {};     // Node manifest.
  bool json = false;
};

// Exit status: 0 when the node will work, 1 when a component would exit, 2 for wrong usage and unreadable input.
[[nodiscard]] int run_expect(const ExpectOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

// --- `plan FILE…`: what the operator would do now, over manifests; `plan --from-cluster`: over the live cluster,
// which is only read.

struct PlanOptions {
  std::vector<std::string> files;  // "-" is stdin.
  bool from_cluster = false;       // Instead of files.
  std::string now;                 // RFC 3339; empty: the present.
  std::string only;                // One reconciler's name; empty: all.
  // Conditions that the planners see count as having held for this long.
  k8s::Duration assume_observed_for{0};
  std::string observed_for_text{};  // As it was given.
  bool json = false;
  PlannerSettings settings;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

// Exit status: 0 fine, 1 with a finding of severity error, 2 for unreadable input or a wrong argument.
// `connection`: for the live cluster.
[[nodiscard]] int run_plan(const PlanOptions& options, const Options& connection, std::istream& in, std::ostream& out,
                           std::ostream& err);

// The live cluster's plan, on a given client. `err` says first if no operator is at work there.
boost::asio::awaitable<int> plan_cluster(k8s::Reader* client, k8s::Clock* clock, PlanOptions options, std::ostream* out,
                                         std::ostream* err);

// --- `explain`: why a node is in its state, or why a pod that wants GPUs is Pending, rejected or slow. Reads only.

struct ExplainOptions {
  std::vector<std::string> what;   // NODE | NAMESPACE/POD | node NAME | pod NAME | pod NAMESPACE/NAME
  std::string pod_namespace;       // --namespace beside `pod NAME`, as kubectl means it; empty: not so.
  std::vector<std::string> files;  // Manifests instead of the live cluster; "-" is stdin.
  OutputForm form = OutputForm::text;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

struct ExplainTarget {
  bool pod = false;
  k8s::ObjectKey key;
};
// Errors (`invalid`) say what is accepted. `ns`: of a pod without one.
[[nodiscard]] k8s::Result<ExplainTarget> explain_target(const std::vector<std::string>& what, const std::string& ns);

// `pod NAME`: --namespace is the pod's then, as with kubectl, not the operator's.
[[nodiscard]] bool names_a_pod_alone(const std::vector<std::string>& what);

// A pod, for somebody who may read neither nodes nor device plugins: its Events and its namespace are read instead.
// `pod_json`: the pod. What cannot be read is added to `incomplete`. In explain_pods.cc.
boost::asio::awaitable<k8s::Result<PodExplanation>> explain_alone(k8s::Reader* client, k8s::Clock* clock,
                                                                  k8s::ObjectKey pod, std::string pod_json,
                                                                  PlannerSettings settings,
                                                                  std::vector<std::string>* incomplete);

// What a workload says that has the name of a pod that does not exist.
struct UncreatedPod {
  std::optional<PodExplanation> explanation;  // Its pods could not be created; nullopt: none says so.
  std::string hint;                           // Without one: where to look.
};
// `pod`: it does not exist. What cannot be read is added to `incomplete`. In explain_pods.cc.
boost::asio::awaitable<UncreatedPod> find_uncreated_pod(k8s::Reader* client, k8s::ObjectKey pod,
                                                        std::vector<std::string>* incomplete);

// `lease_name`: of the operator. Exit status: 0 nothing is wrong, 1 the node is Failed or Blocked or has an error, no
// operator runs that ends its change, or the pod cannot run; 2 there is no such object, or the cluster cannot be read.
boost::asio::awaitable<int> explain_on_cluster(k8s::Reader* client, k8s::Clock* clock, ExplainTarget target,
                                               OutputForm form, PlannerSettings settings, std::ostream* out,
                                               std::ostream* err, std::string lease_name = Options().lease_name);

// What `explain NODE` prints about a node. `columns`: of the terminal; 0: it is none.
void print_explanation(const NodeExplanation& explanation, std::ostream& out, std::size_t columns = 0);

// --- `audit`: what is wrong with GPU sharing in a cluster, by one look with the user's own kubeconfig. Reads only,
// needs nothing installed.

struct AuditOptions {
  std::vector<std::string> files{};  // Manifests instead of the live cluster; "-" is stdin.
  OutputForm form = OutputForm::text;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

// Exit status: 0 fine, 1 with a finding of severity error, 2 when the cluster cannot be read.
boost::asio::awaitable<int> audit_cluster(k8s::Reader* client, k8s::Clock* clock, AuditOptions audit,
                                          PlannerSettings settings, std::ostream* out, std::ostream* err);

// Of what has been read. `view` gets a record where it has none.
[[nodiscard]] int audit_view(ClusterView& view, const PlannerSettings& settings, OutputForm form, std::ostream& out);

// --- `cleanup`: removes what the operator added to Nodes and policies before it is uninstalled. Uninstalling the
// chart runs it.

struct CleanupOptions {
  std::string stop_deployment;                       // In --namespace: scaled to 0 first. Empty: nothing is stopped.
  k8s::Duration timeout = std::chrono::seconds(60);  // How long to wait for the leader to release the Lease; 1s to 1h.
  std::string timeout_text{};                        // As it was given.
  // The DaemonSet of standalone MPS daemons that is deleted afterwards, as NAMESPACE/NAME: nothing is done while pods
  // use the GPUs of its nodes, unless its annotation allows it. Empty: none.
  std::string standalone_mps{};
  bool dry_run = false;  // Only says what it would do; needs no lease.
  bool json = false;
};

// The whole of it on a given client. It holds the operator's own Lease meanwhile, so that no operator writes beside it,
// and removes Lease and record at the end. Doing it twice is harmless. Exit status: 0 nothing is left (but what is
// named as kept on purpose), 1 somebody else keeps the Lease or a write failed, 2 the cluster cannot be read.
boost::asio::awaitable<int> cleanup_command(k8s::ApiClient* client, k8s::Clock* clock, CleanupOptions cleanup,
                                            Options options, std::ostream* out, std::ostream* err);

// --- `check`: whether an installation works, as its own account sees it. What `helm test` runs.

struct CheckOptions {
  Duration timeout = std::chrono::seconds(30);  // How long to wait for a leader.
  std::string timeout_text{};                   // As it was given.
  // Also whether this account may send the operator's writes (SelfSubjectAccessReview; nothing is written). A person's
  // account usually does not have these permissions.
  bool writes = false;
  bool without_crds = false;  // The CRDs are left out on purpose: that neither is installed is no fault.
};

// One line for each check: read permissions, write permissions if requested, the CRDs, and a leader that renews its
// Lease while this program looks. A holder that does not renew is watched until its Lease has expired, also where that
// takes longer than the timeout; what is waited for, and until when at most, is on `err` before the wait. Exit status:
// 0 fine, 1 when something is missing, 2 when the cluster cannot be reached.
boost::asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options,
                                             CheckOptions check, std::ostream* out, std::ostream* err);

// --- `verify NODE`: containers that use the node's shared GPUs at the same time, and say what each of them gets. The
// one command that creates pods, with the rights of whoever types it. verify_job.cc has what is pure.

inline constexpr std::int64_t kMostVerifyPods = 64;
struct VerifyOptions {
  std::string node = {};
  std::string ns = {};  // Of the Job; empty: of the kubeconfig's context, else default.
  // 1 to kMostVerifyPods; 0: as many as replicas are free, at most 16.
  std::int64_t pods = 0;
  std::string image = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0";
  std::string runtime_class = {};                        // Empty: the cluster's default.
  k8s::Duration timeout = std::chrono::seconds(3 * 60);  // Until all have answered; 1s to 1h.
  std::string timeout_text{};                            // As it was given.
  bool json = false;
};

// What is asked of a node, and what its clients must answer.
struct VerifyJob {
  VerifyOptions asked;
  std::string name = {};  // Of the Job.
  ClientShare share;
  std::int64_t gpus = 0;  // Whose memory limits each client reads.
  std::vector<Taint> tolerated = {};
  std::string daemon_log = {};  // How to read it; empty: no pod of the device plugin's MPS daemon is there.
};
// Errors (`invalid`): why nothing can be proven there now, and what to do; more pods are asked for than it has
// replicas. `index` is refreshed, with a record.
[[nodiscard]] k8s::Result<VerifyJob> plan_verification(const VerifyOptions& asked, const ClusterView& view,
                                                       const FleetIndex& index);
// The Job as JSON. The cluster ends and removes it by itself, should nobody else.
[[nodiscard]] std::string manifest_of(const VerifyJob& job);

// One pod of the Job: what its status says, and what its container has answered.
struct VerifyClient {
  struct Answer {
    std::int64_t status = 0;  // Exit status of what was asked.
    std::string text;
  };
  std::string name, owner;  // `owner`: uid of its controller.
  std::string problem;      // Why its container does not run; empty: it runs, or nothing says so.
  bool runs = false;
  bool ended = false;             // It runs no more, or never will.
  std::int64_t started = 0;       // By the node's clock, in seconds since 1970. 0: no answer.
  std::int64_t seen = 0;          // The newest time at which it ran, by the same clock.
  bool answered = false;          // It has asked all there is to ask.
  std::string pipe_directory;     // CUDA_MPS_PIPE_DIRECTORY
  bool has_tool = false;          // nvidia-cuda-mps-control is there.
  std::optional<Answer> threads;  // Of the MPS daemon, and the memory limits by index of the GPU.
  std::vector<Answer> memory;
  std::string program;           // The CUDA program of the image; empty: it has none.
  std::optional<Answer> newest;  // How that program ended: the first time that it failed, else the newest.
};
// From a pod's JSON.
[[nodiscard]] k8s::Result<VerifyClient> project_verify_client(std::string_view json);
// Adds the answers in the log. Lines that are none, and answers that make no sense, are left out.
void read_answers(std::string_view log, VerifyClient& client);

// In the order of what is reported first, where clients differ.
enum class VerifyVerdict { no_daemon, client_fails, limit_differs, pending, proven };
// "NoDaemon", "ClientFails", "LimitDiffers", "Pending", "Proven"
[[nodiscard]] std::string_view to_string(VerifyVerdict verdict);
struct VerifyReport {
  VerifyVerdict verdict = VerifyVerdict::pending;
  std::string message;
  std::string next;       // A command that says more; empty: proven, or nobody could look.
  bool is_final = false;  // Waiting changes nothing.
  struct Row {
    VerifyClient client;
    VerifyVerdict verdict = VerifyVerdict::pending;
    std::string text;  // Why it is that one; empty: proven.
  };
  std::vector<Row> rows;
};
// Proven: as many clients as were asked for ran at the same time, and each got what it should.
[[nodiscard]] VerifyReport judge_clients(const VerifyJob& job, std::vector<VerifyClient> clients);

// The whole of it on a given client. The Job is deleted at the end, also when `stop` is notified. Exit status: 0
// Proven; 1 LimitDiffers, NoDaemon, ClientFails; 2 Pending, or nothing was asked because the cluster cannot be read, or
// the node cannot be verified now.
boost::asio::awaitable<int> verify_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, k8s::Signal* stop,
                                              VerifyOptions verify, PlannerSettings settings, std::ostream* out,
                                              std::ostream* err);

// --- `support-bundle`: everything that helps to find a fault, without secrets, in one archive. Reads only.

// The archive's bytes, a compressed tar. Without the right to read Nodes or DaemonSets it holds what can be read: no
// status, plan and audit then. `incomplete` gets what is missing, each with the missing rule; it can be null. Errors:
// the API server does not answer, knows nobody of that name (401), or allows no list at all.
boost::asio::awaitable<k8s::Result<std::string>> support_bundle(k8s::Reader* client, k8s::Clock* clock, Options options,
                                                                std::vector<std::string>* incomplete = nullptr);

// --- The values, in the order of the help.

[[nodiscard]] Subcommand make_run_command();
[[nodiscard]] Subcommand make_lint_command();
[[nodiscard]] Subcommand make_expect_command();
[[nodiscard]] Subcommand make_plan_command();
[[nodiscard]] Subcommand make_explain_command();
[[nodiscard]] Subcommand make_audit_command();
[[nodiscard]] Subcommand make_cleanup_command();
[[nodiscard]] Subcommand make_check_command();
[[nodiscard]] Subcommand make_support_bundle_command();
[[nodiscard]] Subcommand make_verify_command();
// Of the chart's standalone MPS DaemonSet. Its verbs: `run`, `observe`, `ready`, `check`.
[[nodiscard]] Subcommand make_mps_daemon_command();

}  // namespace gso
