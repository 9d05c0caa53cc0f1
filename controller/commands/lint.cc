// The command `lint`: files and stdin in, JSON or text for people out.
#include "controller/commands/commands.h"

#include <algorithm>
#include <istream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "controller/commands/shared/command.h"
#include "controller/config/version.h"
#include "controller/reading/input_file.h"
#include "k8sclient/value/object.h"
#include "reconcilers/checks/catalogue.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

// By document: a ConfigMap or the values of a chart are one, with a profile for each key.
struct Totals {
  std::set<std::string> documents;
  std::set<std::string> invalid;
  std::set<std::string> warned;
  std::size_t keys = 0;  // Profiles that are keys of a document.
  std::size_t not_checked = 0;
  std::set<std::string> unchecked_kinds;  // Of these.

  // True for a document about which lint says only that it does not check its kind.
  bool add(const LintedDocument& document) {
    const auto& found = document.diagnostics;
    const bool warns = std::ranges::find(found, Severity::warning, &Diagnostic::severity) != found.end();
    const bool skipped =
        !found.empty() && std::ranges::all_of(found, [](const auto& d) { return d.code == kNotChecked; });
    documents.insert(document.source);
    if (!document.key.empty()) ++keys;
    if (skipped) unchecked_kinds.insert(document.kind);
    not_checked += skipped ? 1 : 0;
    if (!document.valid()) invalid.insert(document.source);
    if (warns) warned.insert(document.source);
    return skipped;
  }
};

std::string summary(const Totals& totals) {
  const std::vector<std::string> kinds(totals.unchecked_kinds.begin(), totals.unchecked_kinds.end());
  const std::string skipped = totals.not_checked == 0 ? ""
                                                      : fmt::format("; {} of kinds that lint does not check ({})",
                                                                    totals.not_checked, one_line(first_names(kinds)));
  const std::string keys = totals.keys == 0 ? "" : fmt::format(" ({})", counted(totals.keys, "profile"));
  return fmt::format("{}{}: {} with errors, {} with warnings{}\n", counted(totals.documents.size(), "document"), keys,
                     totals.invalid.size(), totals.warned.size(), skipped);
}

std::string file_of(const LintedDocument& document) {
  return document.source.substr(0, document.source.rfind('#'));
}

// What lint has read and found.
struct Linted {
  std::vector<LintedDocument> documents;
  std::map<std::string, std::string> texts;  // By file: for people.
  bool readable = true;
};

Linted lint_files(const LintOptions& options, std::istream& in, std::ostream& err) {
  Linted out;
  std::vector<std::string> problems;
  PodRules rules{.kai_gpu_sharing = options.kai_gpu_sharing, .mps_user = options.mps_user};
  const bool for_people = !options.json && !options.sarif;
  std::vector<ClusterObject> objects;
  for (const std::string& file : expand_folders(options.files, problems)) {
    auto text = read_written_input(file, in);
    if (!text) {
      problems.push_back(text.error().message);
      continue;
    }
    for (LintedDocument& document : lint_text(file, *text, rules, &objects)) {
      if (options.json) document.value.clear();  // Texts are for people only.
      out.documents.push_back(std::move(document));
    }
    if (for_people) out.texts[file] = *std::move(text);
  }
  for (const std::string& problem : problems) print_line(err, "gpu-sharing-operator lint: {}", problem);
  out.readable = problems.empty();
  lint_cluster(objects, out.documents);
  lint_nos(objects, out.documents);
  lint_kai(objects, rules, out.documents);
  lint_pods(objects, out.documents);
  return out;
}

void print_for_people(Linted& linted, std::ostream& out) {
  std::map<std::string, SourceLines> files;
  // The same said of many Nodes is printed once, with their number: it is the fault of what they have in common.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes;
  Totals totals;
  for (const LintedDocument& document : linted.documents) {
    if (totals.add(document)) continue;
    LintedDocument said = document;
    std::erase_if(said.diagnostics, [&](const Diagnostic& d) {
      if (document.kind != "Node") return false;
      std::vector<std::string>& names = nodes[{d.code, d.path + d.message}];
      names.push_back(document.name.empty() ? document.source : document.name);  // A name can be no string.
      return names.size() > 1;
    });
    if (said.diagnostics.empty()) continue;
    const std::string file = file_of(document);
    out << lint_report(said, files.try_emplace(file, linted.texts[file]).first->second);
  }
  for (const auto& [what, names] : nodes) {
    if (names.size() < 2) continue;
    const std::vector<std::string> others(names.begin() + 1, names.end());
    print_line(out, "{} also holds for {}: {}", what.first, counted(others.size(), "more node"), first_names(others));
  }
  out << summary(totals);
}

// SARIF 2.1.0, the form in which code review tools take findings: GitHub code scanning, GitLab, editors. A rule must
// have descriptions, and a result a place in a file.
OrderedJson rule_of(const std::string& code) {
  const std::string_view meaning = meaning_of(code);
  const std::string text = meaning.empty() ? code : std::string(meaning);
  const std::string_view remedy = remedy_of(code);
  return {{"id", code},
          {"shortDescription", {{"text", text}}},
          {"fullDescription", {{"text", text}}},
          {"help", {{"text", remedy.empty() ? text : std::string(remedy)}}}};
}

// A note is what SARIF calls an info.
std::string_view level_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

// The URI of a file: what is not allowed in a path is escaped.
std::string uri_of(std::string_view file) {
  if (file == "-") return "stdin";
  std::string out;
  for (const auto part : std::views::split(file, '/')) out += "/" + k8s::percent_encode({part.begin(), part.end()});
  return out.substr(1);
}

OrderedJson location_of(const LintedDocument& document, const Diagnostic& found) {
  // Lines of a key's value count from the value's first line. `line_before` places them in the file, where the file
  // has the value unchanged.
  const bool placed = document.key.empty() || document.line_before.has_value();
  const int before = document.line_before.value_or(0);
  const int line = placed && found.at.line > 0 ? found.at.line + before : 0;
  OrderedJson region{{"startLine", std::max(line, 1)}};
  if (line > 0) region["startColumn"] = std::max(found.at.column, 1);
  return {{"physicalLocation",
           {{"artifactLocation", {{"uri", uri_of(file_of(document))}}}, {"region", std::move(region)}}}};
}

void print_sarif(const std::vector<LintedDocument>& documents, std::ostream& out) {
  OrderedJson rules = OrderedJson::array();
  std::map<std::string, std::size_t> places;
  OrderedJson results = OrderedJson::array();
  for (const LintedDocument& document : documents) {
    for (const Diagnostic& d : document.diagnostics) {
      if (d.code == kNotChecked) continue;
      const auto [at, fresh] = places.try_emplace(d.code, rules.size());
      if (fresh) rules.push_back(rule_of(d.code));
      const std::string where = document.key.empty() ? d.path : fmt::format("key {}: {}", document.key, d.path);
      const std::string message = where.empty() ? d.message : fmt::format("{}: {}", where, d.message);
      results.push_back({{"ruleId", d.code},
                         {"ruleIndex", at->second},
                         {"level", level_of(d.severity)},
                         {"message", {{"text", shown_message(message)}}},
                         {"locations", OrderedJson::array({location_of(document, d)})}});
    }
  }
  const OrderedJson driver{{"name", "gpu-sharing-operator"}, {"version", version()}, {"rules", std::move(rules)}};
  const OrderedJson run{{"tool", {{"driver", driver}}}, {"results", std::move(results)}};
  const OrderedJson document{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                             {"version", "2.1.0"},
                             {"runs", OrderedJson::array({run})}};
  out << printable_json(document.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) << "\n";
}

OrderedJson codes_document() {
  const auto row_json = [](const CodeRow& row) -> OrderedJson {
    return {{"codes", row.names()},
            {"severity", to_string(row.severity)},
            {"seen", row.seen},
            {"meaning", row.meaning},
            {"remedy", row.remedy}};
  };
  const auto section_json = [&](const CodeSection& section) -> OrderedJson {
    return {{"title", section.title}, {"intro", section.intro}, {"codes", json_list(section.rows, row_json)}};
  };
  return {{"sections", json_list(code_catalogue(), section_json)}};
}

// `lint --codes`. JSON: {"sections": [{"title", "intro", "codes": [{"codes", "severity", "seen", "meaning",
// "remedy"}]}]}, from which docs/reference.py makes a page. Else one code a line, for people.
void print_codes(bool json, std::ostream& out) {
  if (json) {
    out << codes_document().dump(2) << "\n";
    return;
  }
  for (const CodeSection& section : code_catalogue()) {
    out << section.title << "\n";
    for (const CodeRow& row : section.rows) {
      for (const std::string_view code : row.names()) {
        out << "  " << code << " (" << to_string(row.severity) << "): " << row.meaning << ". To do: " << row.remedy
            << "\n";
      }
    }
  }
}

}  // namespace

int run_lint(const LintOptions& options, std::istream& in, std::ostream& out, std::ostream& err) {
  if (options.codes) {
    print_codes(options.json, out);
    return 0;
  }
  if (options.files.empty()) return refuse(err, "gpu-sharing-operator lint", "give a file, a folder, or - for stdin");
  Linted linted = lint_files(options, in, err);
  if (options.json)
    out << lint_json(linted.documents);
  else if (options.sarif)
    print_sarif(linted.documents, out);
  else
    print_for_people(linted, out);
  const bool valid = std::ranges::all_of(linted.documents, [](const LintedDocument& each) { return each.valid(); });
  return !linted.readable ? 2 : valid ? 0 : 1;
}

Subcommand make_lint_command() {
  const auto lint = std::make_shared<LintOptions>();
  const auto describe = [lint](CLI::App& app, OptionFlags& settings) {
    app.add_option("FILE", lint->files, "YAML or JSON files, folders, or - for stdin");
    app.add_flag("--codes", lint->codes, "List every diagnostic code, with what it means and what to do");
    app.footer(
        exit_status_of_findings() +
        "\n"
        "An empty file is a profile without sharing, as for the plugin; nothing at all from stdin is unreadable.\n"
        "It checks what concerns GPU sharing; `kubectl apply --dry-run=server` checks the rest.");
    app.add_option_function<std::string>(
           "--kai-gpu-sharing", [lint](const std::string& text) { lint->kai_gpu_sharing = text == "true"; },
           "Whether KAI's GPU sharing is on, for Pods")
        ->check(CLI::IsMember({"true", "false"}))
        ->type_name("true|false");
    add_mps_user(app, settings);
    add_output(app, {"text", "json", "sarif"}, [lint](const std::string& output) {
      lint->json = output == "json";
      lint->sarif = output == "sarif";
    });
  };
  return {.name = "lint",
          .summary = "Check profiles, ConfigMaps that hold them, SharingPolicies, Pods and workloads",
          .describe = describe,
          .run = [lint](const Invocation& i) {
            lint->mps_user = i.options.partitioning.mps_user;
            return run_lint(*lint, i.in, i.out, i.err);
          }};
}

}  // namespace gso
