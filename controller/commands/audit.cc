// One page: the objects found, their problems, and where they are.
#include "controller/commands/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "controller/commands/shared/arguments.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/manifests.h"
#include "reconcilers/checks/catalogue.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::string_view kCommand = "gpu-sharing-operator audit";

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string sums(const std::map<std::string, std::int64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) {
    out += fmt::format("{}{} on {}", out.empty() ? "" : ", ", name.empty() ? "none" : name, count);
  }
  return out.empty() ? "none" : out;
}

std::string name_of(const ObjectRef& object) {
  if (object.name.empty()) return object.kind;
  const std::string name = object.ns.empty() ? object.name : object.ns + "/" + object.name;
  return object.kind == "Node" ? name : object.kind + " " + name;
}

void print_findings(const std::vector<Finding>& findings, std::ostream& out) {
  constexpr std::size_t kNamed = 8;
  // Reports the same problem of several objects once. Sorted so that findings that differ only in their object are
  // adjacent.
  std::vector<std::pair<const Finding*, std::vector<std::string>>> said;
  for (const Finding& finding : findings) {
    const auto same = std::ranges::find_if(said, [&](const auto& entry) {
      const Finding& other = *entry.first;
      return std::tie(other.severity, other.reason, other.message) ==
             std::tie(finding.severity, finding.reason, finding.message);
    });
    if (same == said.end()) {
      said.push_back({&finding, {name_of(finding.object)}});
    } else {
      same->second.push_back(name_of(finding.object));
    }
  }
  for (auto& [finding, names] : said) {
    const std::size_t rest = names.size() > kNamed ? names.size() - kNamed : 0;
    names.resize(names.size() - rest);
    out << fmt::format("\n{} {}: {}\n    {}{}\n", to_string(finding->severity), finding->reason, finding->message,
                       fmt::join(names, ", "), rest > 0 ? fmt::format(" and {} more", rest) : "");
    if (const std::string_view remedy = remedy_of(finding->reason); !remedy.empty()) {
      out << fmt::format("    to do: {}\n", remedy);
    }
  }
}

Json document_of(const Audit& audit, const ClusterView& view) {
  Json findings = Json::array();
  for (const Finding& finding : audit.findings) {
    findings.push_back(to_json(finding));
    findings.back()["remedy"] = remedy_of(finding.reason);
  }
  return {{"nodes", audit.nodes},
          {"plugins", audit.plugins},
          {"profiles", audit.profiles},
          {"summary",
           {{"errors", audit.count(Severity::error)},
            {"warnings", audit.count(Severity::warning)},
            {"infos", audit.count(Severity::info)}}},
          {"findings", std::move(findings)},
          {"incomplete", view.incomplete}};
}

}  // namespace

int audit_view(ClusterView& view, const PlannerSettings& settings, k8s::WallTime now, OutputForm form,
               std::ostream& out) {
  FleetIndex index;
  index.note_everything_changed();
  const bool assumed = assume_baseline(view.world, index, settings, now);
  const Timers timers;
  const Snapshot snapshot{view.world, now, timers, view.consumers, settings};
  const Audit found = audit(snapshot, index);
  const std::int64_t errors = found.count(Severity::error);
  const std::string unknown = coverage_gap(view.world, settings);
  const int code = errors > 0 ? 1 : unknown.empty() ? 0 : 2;
  if (form == OutputForm::json || form == OutputForm::yaml) {
    print_document(document_of(found, view), form, out);
    return code;
  }
  std::ostringstream text;
  text << fmt::format("{}: plugin {}; profile {}\n", counted(found.nodes, "GPU node"), sums(found.plugins),
                      sums(found.profiles));
  text << fmt::format("{}, {}, {}\n", counted(errors, "error"), counted(found.count(Severity::warning), "warning"),
                      counted(found.count(Severity::info), "info"));
  if (!unknown.empty()) text << unknown << ".\n";
  if (assumed) text << "No record of the operator was found; the current state is taken as the baseline.\n";
  print_findings(found.findings, text);
  for (const std::string& missing : view.incomplete) text << "\nincomplete: " << missing << "\n";
  out << printable(text.str());
  return code;
}

asio::awaitable<int> audit_cluster(k8s::Reader* client, k8s::Clock* clock, AuditOptions audit, PlannerSettings settings,
                                   std::ostream* out, std::ostream* err) {
  ClusterView view;
  const k8s::Result<void> read = co_await read_cluster(client, clock, settings, &view);
  if (!read) {
    *err << kCommand << ": " << read.error().message << "\n";
    co_return 2;
  }
  co_return audit_view(view, settings, clock->now(), audit.form, *out);
}

int run_audit(const AuditOptions& audit, const Options& options, std::istream& in, std::ostream& out,
              std::ostream& err) {
  const PlannerSettings settings = options.planner_settings();
  if (!audit.files.empty()) {
    const k8s::WallTime now = present();
    const auto refuse = [&](const k8s::Error& error) {
      err << kCommand << ": " << error.message << "\n";
      return 2;
    };
    const k8s::Result<std::vector<ManifestFile>> files = read_files(audit.files, in);
    if (!files) return refuse(files.error());
    k8s::Result<ClusterView> view = view_of(*files, now);
    if (!view) return refuse(view.error());
    return audit_view(*view, settings, now, audit.form, out);
  }
  return run_on_cluster("audit", options, err, [&](k8s::Reader* client, k8s::Clock* clock) {
    return audit_cluster(client, clock, audit, settings, &out, &err);
  });
}

Command make_audit_command() {
  const auto audit = std::make_shared<AuditOptions>();
  const auto describe = [audit](CLI::App& app, OptionFlags& settings) {
    add_manifests(app, audit->files);
    add_output(app, audit->form, {"text", "json", "yaml"});
    add_connection(app, settings);
    app.footer(
        "Reads only; the operator need not be installed. Reports drift, invalid profiles, defects of the plugin's\n"
        "release and reservations without consumers. " +
        exit_status_of_findings());
  };
  return {.name = "audit",
          .summary = "What is wrong with GPU sharing in the cluster, on one page",
          .describe = describe,
          .run = [audit](const Invocation& i) { return run_audit(*audit, i.options, i.in, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
