// The objects as they are, redacted; what the planners make of them; the operator's own logs.
#include "controller/commands/commands.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/archive.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/status.h"
#include "controller/config/version.h"
#include "controller/reading/reads.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/writes/event_recorder.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kSupportBundleCommand = "gpu-sharing-operator support-bundle";
constexpr int kLogLines = 5000;       // Of each pod of the operator.
constexpr int kFormerLogLines = 200;  // Of each container that was started again.
constexpr std::size_t kMostRestarted = 20;
constexpr std::size_t kMostExplained = 20;

// A list request, and the file of the bundle that gets its result.
struct Wanted {
  std::string file;
  k8s::Gvr gvr;
  k8s::ListOptions options;
};

struct WantedLog {
  k8s::ObjectKey pod;
  std::string container;

  bool operator==(const WantedLog&) const = default;
};

struct Bundle {
  k8s::Reader* client = nullptr;
  TarArchive archive;
  std::vector<std::string> incomplete;
  std::vector<WantedLog> operators;
  // Up to kMostRestarted containers of the device plugin and of the chart: their former run printed why it ended.
  std::vector<WantedLog> restarted;
  bool has_objects = false;  // A list was answered, be it empty.
};

std::vector<Wanted> cluster_wide() {
  k8s::ListOptions of_gpus;
  of_gpus.field_selector = k8s::FieldSelector::equals("spec.driver", std::string(kGpuDraDriver));
  return {{"nodes", resources::nodes, {}},
          {"clusterpolicies", resources::cluster_policies, {}},
          {"deviceclasses", resources::device_classes, {}},
          {"resourceslices", resources::resource_slices, of_gpus},
          {"poddisruptionbudgets", resources::pod_disruption_budgets, {}},
          {"sharingpolicies", resources::sharing_policies, {}},
          {"sharingrollouts", resources::sharing_rollouts, {}},
          {"kai-configs", resources::kai_configs, {}},
          {"kai-bindrequests", resources::bind_requests, {}}};
}

// What belongs to the discovered operands, and to the operator itself.
std::vector<Wanted> scoped(const World& world, const PlannerSettings& settings) {
  std::vector<Wanted> out;
  const auto of = [](const std::string& ns) {
    k8s::ListOptions options;
    options.ns = ns;
    return options;
  };
  std::set<std::string> namespaces;
  for (const WatchScope& scope : wanted_scopes(world, settings)) {
    namespaces.insert(scope.ns);
    if (scope.kind == WatchScope::Kind::daemonsets) continue;  // Below.
    k8s::ListOptions options = of(scope.ns);
    for (const auto& [key, value] : scope.labels) options.label_selector.match_labels.emplace(key, value);
    if (!scope.name.empty()) options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.name);
    const k8s::Gvr gvr = resource_of(scope.kind);
    out.push_back({fmt::format("{}/{}-{}", scope.ns, gvr.resource, out.size()), gvr, options});
  }
  namespaces.insert(settings.operator_namespace);
  for (const std::string& ns : namespaces) {
    out.push_back({ns + "/daemonsets", resources::daemon_sets, of(ns)});
    out.push_back({ns + "/events", resources::events, of(ns)});
  }
  // Events about cluster-scoped objects (Nodes, SharingPolicies, SharingRollouts) are in the namespace `default`, among
  // all others.
  k8s::ListOptions by_operator = of("default");
  by_operator.field_selector = k8s::FieldSelector::equals("reportingController", std::string(kReportingController));
  out.push_back({"events-of-the-operator", resources::events, by_operator});
  const std::string& own = settings.operator_namespace;
  out.push_back({own + "/deployments", resources::deployments, of(own)});
  out.push_back({own + "/leases", resources::leases, of(own)});
  out.push_back({own + "/operator-pods", resources::pods, of(own)});
  return out;
}

k8s::ObjectKey key_of(const OrderedJson& pod, const std::string& ns) {
  const OrderedJson meta = object_at(pod, "metadata");
  return {text_at(meta, "namespace", ns), text_at(meta, "name")};
}

// The chart's own pods, whatever its names are overridden with.
bool is_of_chart(const OrderedJson& pod) {
  const OrderedJson labels = object_at(object_at(pod, "metadata"), "labels");
  return text_at(labels, "helm.sh/chart").starts_with("gpu-sharing-operator-");
}

void note_restarted(Bundle* bundle, const OrderedJson& pod, const std::string& ns) {
  const OrderedJson status = object_at(pod, "status");
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const OrderedJson& container : list_at(status, list)) {
      const WantedLog one{key_of(pod, ns), text_at(container, "name")};
      // Lists overlap where the plugin runs in the operator's namespace.
      const bool known = std::ranges::find(bundle->restarted, one) != bundle->restarted.end();
      if (number_at(container, "restartCount") > 0 && !known && bundle->restarted.size() < kMostRestarted)
        bundle->restarted.push_back(one);
    }
  }
}

// Whose logs the bundle gets. Other programs can run in the operator's namespace: their logs are nobody's business.
void note_containers(Bundle* bundle, const OrderedJson& pods, const Wanted& wanted) {
  const bool of_operator = wanted.file.ends_with("/operator-pods");
  for (const OrderedJson& pod : pods) {
    if (of_operator && !is_of_chart(pod)) continue;
    note_restarted(bundle, pod, wanted.options.ns);
    const OrderedJson labels = object_at(object_at(pod, "metadata"), "labels");
    if (of_operator && text_at(labels, "app.kubernetes.io/component") == "operator")
      bundle->operators.push_back({key_of(pod, wanted.options.ns), "operator"});
  }
}

asio::awaitable<void> add_list(Bundle* bundle, Wanted wanted) {
  OrderedJson items = OrderedJson::array();
  k8s::ItemFunction sink([&items](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      items.clear();
      return {};
    }
    OrderedJson item = OrderedJson::parse(*json, nullptr, false);
    redact(item);
    items.push_back(std::move(item));
    return {};
  });
  const k8s::Result<std::string> listed = co_await bundle->client->list(wanted.gvr, wanted.options, &sink);
  if (!listed) {
    // An API that is not served is no gap.
    if (listed.error().reason == k8s::Reason::not_found) co_return;
    append_unique(bundle->incomplete, unlisted(listed.error(), wanted.gvr, wanted.options.ns).error().message);
    co_return;
  }
  bundle->has_objects = true;
  if (wanted.gvr.resource == "pods") note_containers(bundle, items, wanted);
  bundle->archive.add("objects/" + wanted.file + ".json",
                      printable_json(items.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n");
}

// Of the present run of each container, or of the former one.
asio::awaitable<void> add_logs(Bundle* bundle, std::vector<WantedLog> logs, bool former) {
  for (const WantedLog& log : logs) {
    const k8s::ObjectKey& pod = log.pod;
    const std::string query =
        former ? fmt::format("previous=true&tailLines={}", kFormerLogLines) : fmt::format("tailLines={}", kLogLines);
    const std::string path =
        fmt::format("/api/v1/namespaces/{}/pods/{}/log?container={}&{}", pod.ns, pod.name, log.container, query);
    const k8s::Result<std::string> text = co_await bundle->client->get_path(path);
    if (text) {
      const std::string file = former ? fmt::format("{}-{}-previous", pod.name, log.container) : pod.name;
      bundle->archive.add("logs/" + file + ".log", redacted(*text));
    } else if (!former || text.error().reason == k8s::Reason::forbidden) {
      // The kubelet keeps the log of a former run only for a while.
      const Attempt read{.verbs = {"get"}, .gvr = resources::pods, .ns = pod.ns, .subresource = "log"};
      append_unique(bundle->incomplete, explain_error(text.error(), read));
    }
  }
}

// The nodes that are not up to date, those without any plugin at the end.
std::vector<std::string> nodes_to_explain(const FleetIndex& index) {
  std::vector<std::string> out = index.node_names();
  std::erase_if(out, [&](const std::string& name) {
    const NodeAssessment* a = index.assessment(name);
    return a == nullptr || state_name(*a) == to_string(Phase::up_to_date);
  });
  std::ranges::stable_partition(
      out, [&](const std::string& name) { return phase_of(*index.assessment(name)) != Phase::unmanaged; });
  return out;
}

// What `explain` prints about the first of these nodes, with the pods that use their GPUs.
std::string explanations(const Snapshot& snapshot, FleetIndex& index) {
  const Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  const std::vector<Finding> findings = all_findings(snapshot, index, plan);
  const std::vector<std::string> names = nodes_to_explain(index);
  std::ostringstream out;
  for (std::size_t i = 0; i < std::min(names.size(), kMostExplained); ++i) {
    const auto node = explain_node(snapshot, index, findings, names[i]);
    if (!node) continue;
    print_explanation(*node, out);
    out << "\n";
  }
  if (names.size() > kMostExplained) out << fmt::format("and {} more nodes\n", names.size() - kMostExplained);
  return out.str();
}

// What the operator would do. `plan` prints the same.
std::string planned_actions(const Snapshot& snapshot, FleetIndex& index) {
  const Plan planned = plan_all(snapshot, index, {.synced = was_read(snapshot.world)});
  std::string out;
  for (const PlannedAction& action : planned.actions) out += print(action) + "\n";
  for (const TimerKey& timer : planned.timers) out += fmt::format("timer {}\n", to_string(timer));
  return out;
}

// What plan, status, explain and audit would print.
void add_findings(Bundle& bundle, ClusterView& view, const PlannerSettings& settings, k8s::Clock* clock) {
  for (const bool json : {false, true}) {
    const std::string text = rollout_status_text(view, settings, clock, json);
    if (!text.empty()) bundle.archive.add(json ? "rollout-status.json" : "rollout-status.txt", redacted(text));
  }
  FleetIndex index;
  index.refresh(view.world, settings);
  const Snapshot snapshot{view.world, view.now, kNoTimers, view.consumers, settings};
  bundle.archive.add("plan.txt", redacted(planned_actions(snapshot, index)));
  // A fleet without a record is described as if it had one, as these commands do it.
  World world = view.world;
  FleetIndex described;
  const bool assumed = assume_baseline(world, described, settings, view.now);
  std::ostringstream status;
  FleetLook look{world, described, settings, view.now, view.incomplete};
  look.presence.running = view.presence.running;
  look.assumed = assumed;
  (void)print_status(look, {.form = OutputForm::wide}, status);
  bundle.archive.add("status.txt", redacted(status.str()));
  const Snapshot explained{world, view.now, kNoTimers, view.consumers, settings};
  bundle.archive.add("explain.txt", redacted(explanations(explained, described)));
  std::ostringstream audit;
  (void)audit_view(view, settings, OutputForm::text, audit);
  bundle.archive.add("audit.txt", redacted(audit.str()));
}

// Exit status: 0 written (what could not be read is named on stderr and in incomplete.txt), 2 the cluster or all of its
// objects cannot be read, or the file not written. `name`: of the file; "-": stdout.
asio::awaitable<int> write_bundle(k8s::Reader* client, k8s::Clock* clock, std::string name, Options options,
                                  std::ostream* out, std::ostream* err) {
  std::vector<std::string> incomplete;
  const k8s::Result<std::string> bytes = co_await support_bundle(client, clock, options, &incomplete);
  for (const std::string& missing : incomplete) print_line(*err, "incomplete: {}", missing);
  if (!bytes) co_return refuse(*err, kSupportBundleCommand, bytes.error().message);
  if (name == "-") {
    *out << *bytes << std::flush;
    co_return 0;
  }
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  file << *bytes << std::flush;
  if (!file) co_return refuse(*err, kSupportBundleCommand, name + " cannot be written");
  *out << fmt::format("{}: {} bytes\n", name, bytes->size());
  co_return 0;
}

}  // namespace

asio::awaitable<k8s::Result<std::string>> support_bundle(k8s::Reader* client, k8s::Clock* clock, Options options,
                                                         std::vector<std::string>* incomplete) {
  PlannerSettings settings = options.planner_settings();
  ClusterView view;
  const k8s::Result<void> read = co_await read_cluster(client, clock, settings, &view);
  // A user without permission to read nodes can still send the operator's namespace, its logs and its objects.
  const bool judged = read.has_value();
  if (!judged && read.error().reason != k8s::Reason::forbidden) co_return std::unexpected(read.error());
  if (!judged) {
    append_unique(view.incomplete, read.error().message);
    append_unique(
        view.incomplete,
        "status.txt, rollout-status.txt, explain.txt, plan.txt and audit.txt are missing: they need permission "
        "to list nodes and daemonsets");
  }
  settings = settings_of_operator(view.world, settings);
  const k8s::ObjectKey lease{settings.operator_namespace, options.lease_name};
  view.presence = co_await find_operator(client, clock, lease, &view.incomplete);
  note_record_elsewhere(view.presence.none, settings, &view.world, &view.incomplete);
  Bundle bundle{client, TarArchive(clock->now()), view.incomplete, {}, {}};
  bundle.archive.add("version.txt", fmt::format("gpu-sharing-operator {}\ntaken {}\n", version(),
                                                k8s::format_micro_time(clock->now())));
  const k8s::Result<std::string> server = co_await client->get_path("/version");
  if (server) bundle.archive.add("server-version.json", *server);
  std::vector<Wanted> wanted = cluster_wide();
  std::ranges::move(scoped(view.world, settings), std::back_inserter(wanted));
  for (const Wanted& one : wanted) co_await add_list(&bundle, one);
  if (!bundle.has_objects) {
    if (incomplete != nullptr) *incomplete = bundle.incomplete;
    co_return k8s::fail(
        k8s::Reason::forbidden,
        "nothing was written: you are not allowed to list a single kind of object, so the archive would "
        "be empty. `incomplete` names the missing permissions, and docs/rights.md has roles with them");
  }
  co_await add_logs(&bundle, bundle.operators, false);
  co_await add_logs(&bundle, bundle.restarted, true);
  if (judged) add_findings(bundle, view, settings, clock);
  std::string missing;
  for (const std::string& what : bundle.incomplete) missing += what + "\n";
  bundle.archive.add("incomplete.txt", missing);
  if (incomplete != nullptr) *incomplete = bundle.incomplete;
  co_return gzipped(std::move(bundle.archive).finish());
}

Subcommand make_support_bundle_command() {
  const auto file = std::make_shared<std::string>("gpu-sharing-support.tar.gz");
  const auto describe = [file](CLI::App& app, OptionFlags& settings) {
    app.add_option("-o,--output", *file, "Where the archive (.tar.gz) goes, - for stdout")
        ->default_str(*file)
        ->type_name("FILE");
    add_connection(app, settings);
    settings.add_to(&app, [](const OptionSpec& spec) { return spec.name == "lease-name"; });
    app.footer(
        "Reads only. Objects of GPU sharing, findings, the plan, and the operator's logs; managed fields, last applied "
        "configurations, tokens, and values that are named like a secret are left out.\n"
        "Exit status: 0 the archive is written; what could not be read is named on stderr and in incomplete.txt.\n"
        "2 wrong usage, the cluster or all of its objects cannot be read, or the archive cannot be written.");
  };
  return {.name = "support-bundle",
          .summary = "Everything that helps to find a fault, without secrets, in one archive",
          .describe = describe,
          .run = [file](const Invocation& i) {
            return run_on_cluster("support-bundle", i.options, i.err, [&](k8s::Reader* client, k8s::Clock* clock) {
              return write_bundle(client, clock, *file, i.options, &i.out, &i.err);
            });
          }};
}

}  // namespace gso
