// `verify` on the simulated API server, with a Job controller, a scheduler and a kubelet whose containers answer as a
// test says; and the script of its containers in a real shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "controller/commands/commands.h"
#include "k8sclient/transport/transport.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/authorizing_transport.h"
#include "tests/controller/our_cluster.h"

namespace gso::verify_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* kJobs = "/apis/batch/v1/namespaces/team/jobs";
constexpr const char* kPods = "/api/v1/namespaces/team/pods";

// What the cluster makes of the Job, and its containers of their questions.
struct Behaviour {
  int replicas = 8;       // That are free.
  int created = 64;       // Pods that admission allows, if it refuses others.
  std::string refused{};  // Why admission refuses the pods; empty: it does not.
  std::string waits{};    // The reason for which no container starts.
  std::string waits_because = "what the kubelet says";
  bool tool = true;
  std::string pipe = "/mps/nvidia.com/gpu/pipe";
  std::string threads = "0 25.0";
  std::string memory = "0 3G";
  std::string program = "/cuda-samples/vectorAdd";
  std::string cuda = "0 Done";
  int log_status = 200;     // Of the API server's answer, which asks the kubelet for it.
  int seconds_apart = 3;    // Of the starts of two containers.
  int seconds_alive = 999;  // Of a container.
};

// Stands before the simulated API server, which has no Jobs and no logs.
class Cluster final : public k8s::Transport {
 public:
  Cluster(k8s::Transport* behind, k8s::Clock* clock) : behind_(behind), clock_(clock) {}

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    const std::string path = request.path.substr(0, request.path.find('?'));
    if (path == kJobs && request.method == k8s::Method::post) co_return create(Json::parse(request.body));
    if (path.starts_with(kJobs) && request.method == k8s::Method::del) {
      deletions.push_back(request.body);
      co_return k8s::HttpResponse{200, {{"content-type", "application/json"}}, "{}"};
    }
    if (path.starts_with(kJobs)) co_return k8s::HttpResponse{200, {{"content-type", "application/json"}}, job.dump()};
    if (path.ends_with("/log")) co_return k8s::HttpResponse{behaviour.log_status, {}, log_of(path)};
    if (path == kPods) move_on();
    k8s::Result<k8s::HttpResponse> answer = co_await behind_->send(std::move(request));
    if (path == kPods && answer && answer->status == 200) answer->body = with_owner(answer->body);
    co_return answer;
  }
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await behind_->open(std::move(request));
    co_return stream;
  }

  Behaviour behaviour;
  Json job;
  std::vector<std::string> deletions;
  std::function<void(const std::string& path, const std::string& body)> post, merge;

 private:
  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_->now().time_since_epoch()).count();
  }
  [[nodiscard]] std::int64_t start_of(int pod) const { return created_ + pod * behaviour.seconds_apart; }

  k8s::HttpResponse create(Json object) {
    job = std::move(object);
    job["metadata"]["uid"] = "job-uid";
    created_ = now();
    const std::string name = job["metadata"]["name"];
    if (!behaviour.refused.empty()) {
      const Json event{
          {"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", "refused"}, {"namespace", "team"}}},
          {"involvedObject", {{"kind", "Job"}, {"name", name}, {"namespace", "team"}, {"apiVersion", "batch/v1"}}},
          {"reason", "FailedCreate"},
          {"message", behaviour.refused},
          {"type", "Warning"},
          {"lastTimestamp", "2026-01-01T00:00:02Z"}};
      post("/api/v1/namespaces/team/events", event.dump());
    }
    const int pods = std::min(job["spec"]["parallelism"].get<int>(), behaviour.created);
    for (int i = 0; i < pods; ++i) {
      Json pod = job["spec"]["template"];
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      pod["metadata"]["name"] = name + "-" + std::to_string(i);
      pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name;
      if (i < behaviour.replicas) pod["spec"]["nodeName"] = "gpu-1";
      post(kPods, pod.dump());
    }
    pods_ = pods;
    return {201, {{"content-type", "application/json"}}, job.dump()};
  }

  // The collector of the simulated server would delete pods of a Job that it does not have.
  static std::string with_owner(const std::string& body) {
    Json list = Json::parse(body);
    for (Json& pod : list["items"])
      if (pod["metadata"].contains("labels"))
        pod["metadata"]["ownerReferences"] = Json::array({{{"kind", "Job"}, {"uid", "job-uid"}, {"controller", true}}});
    return list.dump();
  }

  // The statuses of now.
  void move_on() {
    for (int i = 0; i < pods_; ++i) {
      Json status{{"phase", "Pending"}};
      Json container{{"name", "client"}, {"ready", false}, {"restartCount", 0}, {"image", "i"}, {"imageID", "i"}};
      const bool over = now() > start_of(i) + behaviour.seconds_alive;
      if (i >= behaviour.replicas) {
        status["conditions"] = Json::array({{{"type", "PodScheduled"},
                                             {"status", "False"},
                                             {"reason", "Unschedulable"},
                                             {"message", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}});
      } else if (!behaviour.waits.empty()) {
        container["state"] = {{"waiting", {{"reason", behaviour.waits}, {"message", behaviour.waits_because}}}};
      } else if (over) {
        status["phase"] = "Succeeded";
        container["state"] = {{"terminated", {{"exitCode", 0}, {"reason", "Completed"}}}};
      } else if (now() >= start_of(i)) {
        status["phase"] = "Running";
        container["state"] = {{"running", {{"startedAt", "2026-01-01T00:00:01Z"}}}};
      }
      if (container.contains("state")) status["containerStatuses"] = Json::array({container});
      const std::string name = job["metadata"]["name"].get<std::string>() + "-" + std::to_string(i);
      merge(std::string(kPods) + "/" + name + "/status", Json{{"status", status}}.dump());
    }
  }

  [[nodiscard]] std::string log_of(const std::string& path) const {
    const std::string pod = path.substr(0, path.size() - std::string("/log").size());
    const std::int64_t start = start_of(std::stoi(pod.substr(pod.rfind('-') + 1)));
    const std::int64_t last = std::min(now(), start + behaviour.seconds_alive);
    std::string out =
        "what a driver prints\ngso-verify \ngso-verify memory 9 0 99G\ngso-verify start " + std::to_string(start);
    if (job["spec"]["template"]["spec"]["containers"][0]["env"][1]["value"] != "0") {
      out += "\ngso-verify pipe " + behaviour.pipe + "\n";
      if (behaviour.tool)
        out += "gso-verify tool\ngso-verify threads " + behaviour.threads + "\ngso-verify memory 0 " +
               behaviour.memory + "\ngso-verify memory 1 " + behaviour.memory;
    }
    out += "\ngso-verify program " + behaviour.program + "\ngso-verify answered\n";
    for (std::int64_t at = start; at <= last; at += 2)
      out += "gso-verify " +
             (behaviour.program.empty() ? "runs " + std::to_string(at)
                                        : "cuda " + std::to_string(at) + " " + behaviour.cuda) +
             "\n";
    return out;
  }

  k8s::Transport* behind_;
  k8s::Clock* clock_;
  std::int64_t created_ = 0;
  int pods_ = 0;
};

class Verify : public OurClusterWithoutCrds {
 protected:
  Verify() {
    post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
    share(R"(version: v1
sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
)");
    merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/gpu.memory":"15360"}}})");
    merge("/api/v1/nodes/gpu-1/status",
          R"({"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}})");
    cluster.post = [this](const std::string& path, const std::string& body) { post(path, body); };
    cluster.merge = [this](const std::string& path, const std::string& body) { merge(path, body); };
    asked.node = "gpu-1";
    asked.ns = "team";
    asked.pods = 4;
  }
  void share(const std::string& text) {
    merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", Json{{"data", {{"any", text}}}}.dump());
  }
  int verify(k8s::Transport* through = nullptr) {
    out.str("");
    err.str("");
    k8s::ApiClient mine(through == nullptr ? &cluster : through, &sim.clock, k8s::ClientOptions());
    if (stop == nullptr) stop = sim.clock.make_signal();
    return sim.run(verify_on_cluster(&mine, &sim.clock, stop.get(), asked, PlannerSettings(), &out, &err));
  }

  Cluster cluster{&transport, &sim.clock};
  VerifyOptions asked;
  std::unique_ptr<k8s::Signal> stop;
  std::ostringstream out, err;
};

TEST_F(Verify, AnswersOfClientsAndOfTheClusterGiveAVerdict) {
  struct Case {
    const char* name;
    Behaviour behaviour;
    int status;
    std::vector<std::string> said;
  };
  const std::vector<Case> cases{
      {"all is as it should be",
       {},
       0,
       {"node gpu-1: Proven: 4 clients ran at the same time, and each has read its limits",
        "MPS client: 25 % of threads, 3840 MiB"}},
      {"the daemon says MiB", {.memory = "0 3840M"}, 0, {"Proven"}},
      {"no CUDA program", {.program = ""}, 0, {"Proven", "(the image has no CUDA program, so none ran)"}},
      {"wrong threads",
       {.threads = "0 100.0"},
       1,
       {"LimitDiffers: 4 of 4 clients: ", "threads: 100.0 instead of 25.0",
        "next: gpu-sharing-operator explain node gpu-1\n"}},
      {"wrong memory",
       {.memory = "0 15G"},
       1,
       {"LimitDiffers", "memory of GPU 0: 15G instead of 3G; memory of GPU 1: 15G"}},
      {"no limit is set", {.memory = "0 "}, 1, {"LimitDiffers", "memory of GPU 0: no limit instead of 3G"}},
      {"no tool", {.tool = false}, 1, {"ClientFails", "no nvidia-cuda-mps-control", "--runtime-class"}},
      {"not connected", {.pipe = ""}, 1, {"NoDaemon", "no CUDA_MPS_PIPE_DIRECTORY"}},
      {"no daemon",
       {.threads = "1 Cannot find MPS control daemon process"},
       1,
       {"NoDaemon", "exit status 1: Cannot find MPS control daemon process"}},
      {"the program fails",
       {.cuda = "1 out of memory"},
       1,
       {"ClientFails", "/cuda-samples/vectorAdd failed, exit status 1: out of memory"}},
      {"too few replicas",
       {.replicas = 3},
       2,
       {"Pending: after 40s: 3 of 4 clients run and have answered", "-3: no place for it on the node: 0/1 nodes",
        "next: kubectl get events"}},
      {"one after the other",
       {.seconds_apart = 20, .seconds_alive = 10},
       1,
       {"ClientFails", "its container has ended"}},
      {"no image", {.waits = "ImagePullBackOff"}, 1, {"ClientFails", "ImagePullBackOff: what the kubelet says"}},
      {"no log can be read", {.log_status = 500}, 2, {"Pending: after 40s: 0 of 4", "its log cannot be read: "}},
      {"no image yet", {.waits = "ErrImagePull"}, 1, {"ClientFails", "ErrImagePull: what the kubelet says"}},
      {"nothing starts", {.waits = "ContainerCreating"}, 2, {"Pending: after 40s: 0 of 4"}},
      {"nothing starts, without a word",
       {.waits = "ContainerCreating", .waits_because = ""},
       2,
       {"its container waits: ContainerCreating\n"}},
      {"refused by Pod Security",
       {.created = 0,
        .refused = R"(Error creating: pods "v" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot)"},
       2,
       {"Pending", "violates PodSecurity \"restricted:latest\"", "--namespace"}},
      {"refused by a quota",
       {.created = 0,
        .refused = R"(Error creating: pods "v" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1)"},
       2,
       {"Pending: the Job has created none of 4 pods so far: ", "ResourceQuota gpus of namespace team"}},
      {"refused in part by a quota",
       {.created = 1,
        .refused = R"(Error creating: pods "v" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1)"},
       2,
       {"Pending: the Job has created 1 of 4 pods so far: ", "ResourceQuota gpus of namespace team"}},
      {"the Job controller does nothing",
       {.created = 0},
       2,
       {"Pending: after 40s: the Job has created none of 4 pods so far\n",
        "next: kubectl get events --namespace team --field-selector involvedObject.name=gpu-sharing-verify-"}},
  };
  asked.timeout = std::chrono::seconds(40);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (const Json& pod : get(kPods)["items"])
      (void)send(k8s::Method::del,
                 kPods + std::string("/") + pod["metadata"]["name"].get<std::string>() + "?gracePeriodSeconds=0");
    (void)send(k8s::Method::del, "/api/v1/namespaces/team/events/refused");
    cluster.behaviour = c.behaviour;
    cluster.deletions.clear();
    EXPECT_EQ(verify(), c.status) << out.str() << err.str();
    for (const std::string& part : c.said) EXPECT_THAT(out.str(), HasSubstr(part));
    ASSERT_EQ(cluster.deletions.size(), 1U);
    EXPECT_THAT(cluster.deletions.front(), AllOf(HasSubstr("job-uid"), HasSubstr("Background")));
  }
}

TEST_F(Verify, TheJobIsPlacedByTheSchedulerAndEndsByItself) {
  // The plugin names the taint of this site's GPU nodes; it tolerates all others too, which says nothing about GPUs.
  merge("/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset",
        R"({"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"},{"key":"sku","operator":"Exists"}]}}}})");
  merge("/api/v1/nodes/gpu-1", R"({"spec":{"taints":[{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"},
      {"key":"maintenance","effect":"NoSchedule"},{"key":"sku","value":"gpu","effect":"NoSchedule"}]}})");
  asked.image = "registry.example.com/cuda:1";
  ASSERT_EQ(verify(), 0) << out.str() << err.str();
  const Json spec = cluster.job["spec"];
  EXPECT_EQ(spec["parallelism"], 4);
  EXPECT_EQ(spec["completions"], 4);
  EXPECT_EQ(spec["backoffLimit"], 0);
  EXPECT_EQ(spec["activeDeadlineSeconds"], 210);
  EXPECT_GT(spec["ttlSecondsAfterFinished"], 0);
  const Json pod = spec["template"]["spec"];
  EXPECT_FALSE(pod.contains("nodeName"));
  EXPECT_EQ(pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"],
            Json::parse(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["gpu-1"]}]}])"));
  EXPECT_EQ(pod["tolerations"], Json::parse(R"([{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},
      {"key":"sku","operator":"Exists","effect":"NoSchedule"}])"));
  EXPECT_EQ(pod["restartPolicy"], "Never");
  EXPECT_EQ(pod["containers"][0]["image"], "registry.example.com/cuda:1");
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"], Json::parse(R"({"nvidia.com/gpu":1})"));
}

// A pod of somebody else holds three of the eight; 0 pods: all that is free.
TEST_F(Verify, AsManyPodsAsReplicasAreFreeAndTheyAreConsumersLikeOthers) {
  post(kPods, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train"},"spec":{"nodeName":"gpu-1","containers":[
    {"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"3"}}}]}})");
  asked.pods = 0;
  asked.json = true;
  ASSERT_EQ(verify(), 0) << out.str() << err.str();
  const Json report = Json::parse(out.str());
  EXPECT_EQ(report["pods"], 5);
  EXPECT_EQ(report["clients"].size(), 5U);
  EXPECT_EQ(report["verdict"], "Proven");
  EXPECT_EQ(report["expected"], Json::parse(R"({"threads":"25.0","memory":["3G","3G"]})"));
  EXPECT_EQ(report["clients"][0]["memory"], Json::parse(R"(["3G","3G"])"));
  // The five are still there, as nobody collects the pods of a deleted Job here.
  EXPECT_EQ(verify(), 2);
  EXPECT_THAT(err.str(), HasSubstr("none of the 8 nvidia.com/gpu of node gpu-1 is free"));
}

TEST_F(Verify, NothingIsCreatedWhereNothingCanBeProven) {
  const auto refused = [&](const std::string& why) {
    EXPECT_EQ(verify(), 2) << out.str();
    EXPECT_THAT(err.str(), HasSubstr(why));
    EXPECT_TRUE(cluster.job.is_null());
  };
  asked.node = "gpu-2";
  refused("node gpu-2 not found");
  asked.node = "gpu-1";
  asked.pods = 9;
  refused("node gpu-1 has 8 nvidia.com/gpu: --pods 9 would never run at the same time");
  asked.pods = 4;
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"allocatable":{"nvidia.com/gpu":"0"}}})");
  refused("node gpu-1 offers no nvidia.com/gpu now: gpu-sharing-operator explain node gpu-1");
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"allocatable":{"nvidia.com/gpu":"8"}}})");
  merge("/api/v1/nodes/gpu-1", R"({"spec":{"unschedulable":true}})");
  refused("node gpu-1 is cordoned");
  merge("/api/v1/nodes/gpu-1",
        R"({"spec":{"unschedulable":null},"metadata":{"labels":{"nvidia.com/gpu.memory":null}}})");
  refused("node gpu-1 does not show the memory of each GPU (label nvidia.com/gpu.memory is missing");
  test::ChangeWords change;
  change.to = "v1-0123456789ab";
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  refused("node gpu-1 is in a change");
}

TEST_F(Verify, TimeSlicingIsProvenByProgramsThatRunAndNoLimitIsClaimed) {
  share("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n");
  EXPECT_EQ(verify(), 0) << out.str() << err.str();
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("4 clients ran a CUDA program at the same time; time-slicing limits no memory"),
                    HasSubstr("time-slicing: no memory limit"), Not(HasSubstr("THREADS"))));
}

TEST_F(Verify, WithoutAProgramTimeSlicingProvesNothing) {
  share("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n");
  cluster.behaviour.program = "";
  EXPECT_EQ(verify(), 1) << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr("ClientFails: 4 of 4 clients"));
}

// Those of docs/rights.md, and each of the last two left out.
TEST_F(Verify, ItNeedsTheRightsOfItsDocumentationAndNamesWhatIsMissing) {
  const std::vector<std::string> list{"list"};
  const std::vector<RbacRule> reader{{{""}, {"nodes", "configmaps", "pods", "events"}, list, ""},
                                     {{"apps"}, {"daemonsets", "controllerrevisions"}, list, ""}};
  const RbacRule jobs{{"batch"}, {"jobs"}, {"create", "delete", "get"}, "team"};
  const RbacRule logs{{""}, {"pods/log"}, {"get"}, "team"};
  const auto verify_with = [&](std::vector<RbacRule> rules) {
    rules.insert(rules.end(), reader.begin(), reader.end());
    AuthorizingTransport guard(&cluster, std::move(rules));
    return verify(&guard);
  };
  EXPECT_EQ(verify_with({logs}), 2);
  EXPECT_THAT(err.str(), HasSubstr("add {apiGroups: [batch], resources: [jobs], verbs: [create]}"));
  EXPECT_TRUE(cluster.job.is_null());
  EXPECT_EQ(verify_with({jobs, logs}), 0) << out.str() << err.str();
  EXPECT_EQ(verify_with({jobs}), 2);
  EXPECT_THAT(out.str(), HasSubstr("resources: [pods/log], verbs: [get]"));
  EXPECT_EQ(cluster.deletions.size(), 2U);
}

TEST_F(Verify, WhoeverStopsItLeavesNoJob) {
  cluster.behaviour.waits = "ContainerCreating";
  stop = sim.clock.make_signal();
  stop->notify();
  EXPECT_EQ(verify(), 2);
  EXPECT_THAT(out.str(), HasSubstr("Pending: stopped: "));
  EXPECT_EQ(cluster.deletions.size(), 1U);
}

// The script of the containers in this machine's shell, with a program that answers as the MPS daemon's does.
TEST(VerifyScript, ItSpeaksAsItsReaderUnderstands) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "verify_script";
  std::filesystem::create_directories(folder);
  const std::filesystem::path tool = folder / "nvidia-cuda-mps-control";
  std::ofstream(tool)
      << "#!/bin/sh\nread -r what gpu\ncase $what in get_default_active_thread_percentage) echo 25.0;;\n"
         "get_default_device_pinned_mem_limit) [ \"$gpu\" = 0 ] && echo 3G || { echo '* no GPU'; exit 1; };; esac\n";
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  VerifyJob job;
  job.asked.pods = 1;
  job.share.strategy = Strategy::mps;
  job.share.resource = "nvidia.com/gpu";
  job.gpus = 2;
  const Json container = Json::parse(manifest_of(job))["spec"]["template"]["spec"]["containers"][0];
  std::ofstream(folder / "script") << container["command"][2].get<std::string>();
  const std::string command = "cd / && PATH=" + folder.string() +
                              ":$PATH GPUS=2 CUDA_MPS_PIPE_DIRECTORY=/mps/pipe timeout 1 sh " +
                              (folder / "script").string();
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string log;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) log += static_cast<char>(c);
  (void)pclose(pipe);
  VerifyClient client;
  read_answers(log, client);
  EXPECT_GT(client.started, 0) << log;
  EXPECT_EQ(client.pipe_directory, "/mps/pipe");
  EXPECT_TRUE(client.has_tool);
  ASSERT_TRUE(client.threads.has_value());
  EXPECT_EQ(client.threads->status, 0);
  EXPECT_EQ(client.threads->text, "25.0");
  ASSERT_EQ(client.memory.size(), 2U);
  EXPECT_EQ(client.memory[0].text, "3G");
  EXPECT_EQ(client.memory[1].status, 1);
  EXPECT_EQ(client.memory[1].text, "* no GPU");
  EXPECT_TRUE(client.answered);
  EXPECT_GE(client.seen, client.started);
}

}  // namespace
}  // namespace gso::verify_test
