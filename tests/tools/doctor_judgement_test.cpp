// What `strata doctor` makes of given facts. Nothing is looked at here but text.

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/health/gpu_reading.hpp>

#include "../../tools/doctor/blas.hpp"
#include "../../tools/doctor/bucket.hpp"
#include "../../tools/doctor/folder.hpp"
#include "../../tools/doctor/gpus.hpp"
#include "../../tools/doctor/in_time.hpp"
#include "../../tools/doctor/limits.hpp"
#include "../../tools/doctor/line.hpp"
#include "../../tools/doctor/mount.hpp"
#include "../../tools/doctor/place.hpp"
#include "../../tools/doctor/processor.hpp"
#include "../../tools/doctor/rank_judgement.hpp"
#include "../../tools/doctor/rank_report.hpp"

namespace {

namespace doctor = strata::tools::doctor;
using doctor::Line;
using doctor::Purpose;
using doctor::State;

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

struct DoctorJudgement : ::testing::Test {
    static doctor::ProcessorFacts processor(const std::string& flags) {
        doctor::ProcessorFacts facts =
            doctor::parse_processor("processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu " + flags + "\n");
        facts.cores = 8;
        return facts;
    }
    static doctor::BlasFacts openblas(const std::string& core) {
        doctor::BlasFacts facts;
        facts.library = "libblas.so.3";
        facts.kind = "OpenBLAS";
        facts.core = core;
        facts.parallel = 2;
        facts.operations = 1e11;
        facts.threads = 8;
        return facts;
    }
    static doctor::LimitFacts limits() {
        doctor::LimitFacts facts;
        facts.memory_total = 64 * gib;
        facts.memory_available = 32 * gib;
        facts.memory_of_host = 64 * gib;
        facts.shm_total = 32 * gib;
        facts.shm_available = 32 * gib;
        facts.files = 65536;
        facts.files_at_most = 65536;
        facts.locked = 8 << 20;
        return facts;
    }
    static doctor::FolderFacts folder(Purpose purpose, const std::string& type, const std::string& options) {
        doctor::FolderFacts facts;
        facts.place = {purpose, "/there"};
        facts.exists = facts.is_folder = facts.is_direct = true;
        facts.mount = doctor::Mount{"/", type, "source", options};
        facts.total = 1000 * gib;
        facts.available = 500 * gib;
        facts.written = facts.read = 2e9;
        return facts;
    }
    static doctor::RankReport rank(int number, const std::string& host) {
        doctor::RankReport report;
        report.rank = number;
        report.host = host;
        report.uid = 1000;
        report.library = "Open MPI v4.1.4";
        report.is_complete = true;
        report.shared = doctor::SharedFolder{.sees_first = true, .owner = 1000};
        if (number == 0) {
            report.sum_bytes = 1 << 20;
            report.sum_seconds = 0.001;
        }
        return report;
    }
    static doctor::RanksFacts two_hosts() {
        doctor::RanksFacts facts;
        facts.reports = {rank(0, "a"), rank(1, "b")};
        facts.reports[0].pairs = {
            {.from = "a", .to = "b", .seconds = 2e-5, .bytes_per_second = 1.2e9, .clock_ahead = 0.002}};
        facts.shared_folder = "/shared";
        return facts;
    }
    static const Line* find(const std::vector<Line>& lines, const std::string& subject) {
        for (const Line& line : lines)
            if (line.subject == subject) return &line;
        return nullptr;
    }
    /// The line has that state, those words, and a fix exactly where something is wrong.
    static void expect(const Line& line, State state, const std::vector<std::string>& words) {
        EXPECT_EQ(static_cast<int>(line.state), static_cast<int>(state)) << line.found;
        for (const std::string& word : words)
            EXPECT_NE((line.found + " | " + line.fix).find(word), std::string::npos)
                << word << " in " << line.found << " | " << line.fix;
        EXPECT_EQ(line.fix.empty(), line.state == State::ok) << line.found << " | " << line.fix;
    }
};

TEST_F(DoctorJudgement, ProcessorsAreNamedByWhatTheyCanDo) {
    const std::string avx512 = "avx2 fma avx512f avx512bw avx512dq avx512vl";
    expect(judge(processor(avx512 + " avx512_bf16")), State::ok, {"A Processor, 8 cores: AVX-512, bf16 products"});
    expect(judge(processor("avx2 fma")), State::ok, {"AVX2, no AVX-512", "computed as fp32"});
    expect(judge(processor("sse4_2")), State::warning, {"no AVX2", "-cpu host"});
    expect(judge(processor("avx2")), State::warning, {"no AVX2"});  // kernels of AVX2 multiply and add in one
    auto facts = processor(avx512);
    facts.aten_capability = "avx2";
    expect(judge(facts), State::warning, {"ATEN_CPU_CAPABILITY=avx2", "unset"});
    facts.aten_capability = "avx512";
    facts.quota = 2.5;
    expect(judge(facts), State::warning, {"2.5", "OMP_NUM_THREADS=2"});
    facts.quota = 8;
    expect(judge(facts), State::ok, {});
}

TEST_F(DoctorJudgement, KernelsOfOpenBlasThatWasteTheProcessorAreTold) {
    const auto avx512 = processor("avx2 fma avx512f avx512bw avx512dq avx512vl");
    const auto avx2 = processor("avx2 fma");
    EXPECT_EQ(doctor::better_core(openblas("Haswell"), avx512, false), "SkylakeX");
    EXPECT_EQ(doctor::better_core(openblas("Haswell"), avx512, true), "");
    EXPECT_EQ(doctor::better_core(openblas("Cooperlake"), avx512, false), "");
    EXPECT_EQ(doctor::better_core(openblas("Zen"), avx2, false), "");
    const auto judged = [](const doctor::BlasFacts& facts, const doctor::ProcessorFacts& on,
                           const std::string& set = {}, const std::optional<doctor::BlasFacts>& better = {}) {
        return judge(facts, better, on, set);
    };
    expect(judged(openblas("Zen"), avx2), State::ok, {"OpenBLAS with kernels for Zen: 100 GFLOP/s", "8 threads"});
    auto better = openblas("SkylakeX");
    better.operations = 2e11;
    expect(judged(openblas("Haswell"), avx512, "", better), State::ok,
           {"OPENBLAS_CORETYPE=SkylakeX, with 200 GFLOP/s"});
    better.failure = "it ended with status 132";
    expect(judged(openblas("Haswell"), avx512, "", better), State::problem,
           {"status 132", "export OPENBLAS_CORETYPE=Haswell"});
    expect(judged(openblas("Haswell"), avx512, "Haswell"), State::warning, {"wastes", "unset OPENBLAS_CORETYPE"});
    expect(judged(openblas("Prescott"), avx2), State::warning, {"export OPENBLAS_CORETYPE=Haswell"});
    auto own_threads = openblas("Zen");
    own_threads.parallel = 1;
    expect(judged(own_threads, avx2), State::warning, {"libopenblas0-openmp"});
    expect(judged(doctor::BlasFacts{}, avx2), State::warning, {"no library for matrices"});
    doctor::BlasFacts reference;
    reference.library = "libblas.so.3";
    reference.operations = 2e9;
    expect(judged(reference, avx2), State::warning, {"reference library"});
    auto wrong = openblas("Zen");
    wrong.operations = 0;
    expect(judged(wrong, avx2), State::problem, {"is wrong"});
}

TEST_F(DoctorJudgement, GpusAreSoundWarnedOfOrBroken) {
    EXPECT_EQ(doctor::parse_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug\nGCC"),
              "535.104.05");
    EXPECT_EQ(doctor::parse_driver(""), "");
    doctor::GpuFacts none;
    none.note = "no library";
    expect(judge(none).at(0), State::ok, {"none", "no library"});
    none.has_device = true;
    expect(judge(none).at(0), State::problem, {"no GPU can be used: no library", "nvidia-smi"});
    none.visible = "";
    expect(judge(none).at(0), State::ok, {"CUDA_VISIBLE_DEVICES="});
    doctor::GpuFacts facts;
    facts.driver = "535.104.05";
    strata::health::GpuReading gpu;
    gpu.name = "A100";
    gpu.memory_total = 80 * gib;
    gpu.memory_used = gib;
    facts.gpus = {gpu};
    expect(judge(facts).at(0), State::ok, {"A100", "driver 535.104.05"});
    facts.gpus[0].memory_used = 40 * gib;
    expect(judge(facts).at(0), State::warning, {"50 % of its memory"});
    facts.gpus[0].throttle = strata::health::throttle::hw_power_brake_slowdown;
    expect(judge(facts).at(0), State::warning, {"power supply"});
    facts.gpus[0].ecc_volatile.uncorrected = 3;
    expect(judge(facts).at(0), State::problem, {"3 uncorrectable errors"});
    facts.gpus[0].lost = true;
    expect(judge(facts).at(0), State::problem, {"bus"});
    facts.gpus = {gpu, gpu};
    facts.gpus[1].name = "T4";
    ASSERT_EQ(judge(facts).size(), 3U);
    expect(judge(facts).at(2), State::warning, {"A100 and T4"});
}

TEST_F(DoctorJudgement, LimitsThatEndARunAreProblems) {
    auto facts = limits();
    for (const auto& line :
         {judge_memory(facts), judge_shared_memory(facts), judge_open_files(facts), judge_locked_memory(facts)})
        expect(line, State::ok, {});
    facts.memory_of_host = 256 * gib;
    expect(judge_memory(facts), State::ok, {"cgroup"});
    facts.memory_available = 4 * gib;
    expect(judge_memory(facts), State::warning, {"--memory"});
    facts.memory_total.reset();
    expect(judge_memory(facts), State::warning, {"/proc"});
    facts.shm_total = facts.shm_available = 64 << 20;
    expect(judge_shared_memory(facts), State::warning, {"67.1 MB", "--shm-size"});
    facts.shm_available = 1 << 20;
    expect(judge_shared_memory(facts), State::problem, {"SIGBUS"});
    facts.shm_writable = false;
    expect(judge_shared_memory(facts), State::problem, {"chmod 1777"});
    facts.shm_total.reset();
    expect(judge_shared_memory(facts), State::problem, {"mount -t tmpfs"});
    facts.files = 512;
    expect(judge_open_files(facts), State::warning, {"ulimit -n 65536"});
    facts.files = 64;
    facts.files_at_most = 64;
    expect(judge_open_files(facts), State::problem, {"hard limit of 64"});
    facts.has_infiniband = true;
    expect(judge_locked_memory(facts), State::warning, {"InfiniBand", "unlimited"});
    facts.locked = std::numeric_limits<std::uint64_t>::max();
    expect(judge_locked_memory(facts), State::ok, {"no limit"});
}

TEST_F(DoctorJudgement, WhatRefusesIoUringIsNamed) {
    expect(judge(doctor::UringFacts{0, 0, true, "6.1.0"}), State::ok, {"Linux 6.1.0"});
    expect(judge(doctor::UringFacts{EPERM, 2, true, "6.6"}), State::warning, {"io_uring_disabled is 2", "sysctl"});
    expect(judge(doctor::UringFacts{EPERM, 1, false, "6.6"}), State::warning, {"io_uring_group"});
    expect(judge(doctor::UringFacts{EPERM, 0, true, "6.6"}), State::warning, {"seccomp", "io_uring_setup"});
    expect(judge(doctor::UringFacts{ENOSYS, {}, true, "6.6"}), State::warning, {"seccomp"});
    expect(judge(doctor::UringFacts{ENOSYS, {}, false, "4.19"}), State::warning, {"Linux 4.19 has none", "5.6"});
    expect(judge(doctor::UringFacts{ENOMEM, 0, false, "5.4"}), State::warning, {"ulimit -l"});
    expect(judge(doctor::UringFacts{EACCES, 0, false, "6.6"}), State::warning, {"SELinux"});
}

TEST_F(DoctorJudgement, MountsAreReadAsTheKernelWritesThem) {
    const auto mounts = doctor::parse_mounts(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard\n"
        "30 22 0:40 / /shared\\040disk rw,relatime shared:9 master:2 - nfs4 10.0.0.1:/x rw,vers=4.2,hard,local_lock=none\n"
        "31 22 0:41 / /tmp rw - tmpfs tmpfs rw,size=1024k\n"
        "32 31 0:42 / /tmp/in ro - overlay overlay rw\n"
        "33 22 0:43 / /tmp rw - ramfs over rw\n"
        "what is this\n");
    ASSERT_EQ(mounts.size(), 5U);
    const auto at = [&](const std::string& path) { return doctor::mount_of(mounts, path).value().type; };
    EXPECT_EQ(at("/"), "ext4");
    EXPECT_EQ(at("/shared disk/out"), "nfs4");
    EXPECT_EQ(at("/shared"), "ext4");
    EXPECT_EQ(at("/shared disks"), "ext4");
    EXPECT_EQ(at("/tmp"), "ramfs");  // mounted over the other
    EXPECT_EQ(at("/tmp/in/it"), "overlay");
    EXPECT_TRUE(mounts[1].has("hard") && mounts[1].has("vers") && !mounts[1].has("ver"));
    EXPECT_EQ(mounts[1].option("vers"), "4.2");
    EXPECT_EQ(mounts[1].option("soft"), "");
    EXPECT_FALSE(doctor::mount_of({}, "/"));
}

TEST_F(DoctorJudgement, AFileSystemIsGoodForOneThingAndBadForAnother) {
    struct Case {
        Purpose purpose;
        std::string type, options;
        State state;
        std::vector<std::string> words;
    };
    const std::string good = "rw,vers=4.2,hard,local_lock=none";
    for (const Case& one :
         std::vector<Case>{{Purpose::offload,
                            "ext4",
                            "rw",
                            State::ok,
                            {"/there on ext4", "536.9 GB free", "writes 2.0 GB/s, reads 2.0 GB/s"}},
                           {Purpose::offload, "tmpfs", "rw", State::problem, {"is memory", "NVMe"}},
                           {Purpose::offload, "overlay", "rw", State::warning, {"container", "docker run -v"}},
                           {Purpose::offload, "nfs4", good, State::problem, {"file server"}},
                           {Purpose::output, "tmpfs", "rw", State::warning, {"reboot"}},
                           {Purpose::output, "overlay", "rw", State::warning, {"lost with the container"}},
                           {Purpose::output, "xfs", "ro", State::problem, {"read-only"}},
                           {Purpose::output, "nfs4", good, State::ok, {}},
                           {Purpose::output,
                            "nfs4",
                            "rw,vers=4.2,soft",
                            State::problem,
                            {"mounted soft", "rw,sync,no_subtree_check", "2049", "NTP", "uid"}},
                           {Purpose::output, "nfs", "rw,vers=3,hard", State::warning, {"NFS 3", "nfsvers=4.2"}},
                           {Purpose::output, "nfs", "rw,vers=3,hard,nolock", State::problem, {"locks"}},
                           {Purpose::output, "nfs4", "rw,vers=4.1,hard,local_lock=all", State::problem, {"locks"}},
                           {Purpose::output, "fuse.s3fs", "rw", State::warning, {"fuse.s3fs"}},
                           {Purpose::output, "lustre", "rw", State::problem, {"-o flock"}},
                           {Purpose::output, "lustre", "rw,flock", State::ok, {}},
                           {Purpose::cache, "9p", "rw", State::warning, {"9p"}},
                           {Purpose::data, "fuse.s3fs", "ro", State::ok, {}},
                           {Purpose::data, "tmpfs", "rw", State::ok, {}},
                           {Purpose::folder, "overlay", "rw", State::ok, {}}}) {
        SCOPED_TRACE(doctor::name_of(one.purpose) + " on " + one.type + " " + one.options);
        expect(judge(folder(one.purpose, one.type, one.options)), one.state, one.words);
    }
}

TEST_F(DoctorJudgement, FoldersNeedRoomAndRights) {
    auto facts = folder(Purpose::output, "ext4", "rw");
    facts.available = 20 * gib;
    expect(judge(facts), State::warning, {"less than 5 %"});
    facts.available = gib / 2;
    expect(judge(facts), State::problem, {"less than a checkpoint"});
    facts.write_failure = "Permission denied";
    expect(judge(facts), State::problem, {"Permission denied", "right to write"});
    facts.free_inodes = 0;
    expect(judge(facts), State::problem, {"inodes"});
    facts = folder(Purpose::output, "ext4", "rw");
    facts.exists = facts.is_folder = false;
    expect(judge(facts), State::ok, {"which will be made"});
    facts.place.purpose = Purpose::offload;
    expect(judge(facts), State::problem, {"there is no /there", "mount"});
    facts.place.purpose = Purpose::data;
    expect(judge(facts), State::problem, {"there is no /there"});
    facts.exists = true;
    expect(judge(facts), State::problem, {"is no folder"});
    facts.failure = "Stale file handle";
    expect(judge(facts), State::problem, {"Stale file handle"});
    facts = folder(Purpose::offload, "ext4", "rw");
    facts.written = 1e8;
    expect(judge(facts), State::warning, {"100 MB/s", "NVMe"});
    facts.is_direct = false;
    expect(judge(facts), State::warning, {"through the page cache"});
    expect(doctor::silent_folder({Purpose::output, "/nfs"}, std::chrono::seconds{20}), State::problem,
           {"/nfs has not answered within 20 s"});
}

TEST_F(DoctorJudgement, RightsThatAreMissingAreNamed) {
    const std::string refused =
        "[ST2007] cannot write: the access key of X has no right to do this (AccessDenied). Fix: give it all";
    doctor::BucketFacts facts{
        "s3://b/p", true, {{"s3:ListBucket"}, {"s3:PutObject"}, {"s3:GetObject"}, {"s3:DeleteObject"}}};
    expect(judge(facts), State::ok, {"s3:ListBucket, s3:PutObject, s3:GetObject, s3:DeleteObject"});
    facts.tried[3] = {"s3:DeleteObject", strata::Errc::store_refused, refused};
    const Line line = judge(facts);
    expect(line, State::problem, {"no right to s3:DeleteObject; they have s3:ListBucket", ".strata-doctor-*"});
    EXPECT_EQ(line.values.at("rights").at("s3:DeleteObject"), false);
    EXPECT_EQ(line.values.at("rights").at("s3:GetObject"), true);
    facts.tried = {
        {"s3:ListBucket", strata::Errc::no_bucket, "[ST2008] the bucket 'b' does not exist. Fix: create it."}};
    expect(judge(facts), State::problem, {"s3://b/p: [ST2008] the bucket 'b' does not exist | create it"});
}

TEST_F(DoctorJudgement, PlacesAreNamedOnceAndBucketsByTheirAddress) {
    doctor::Places places;
    places.add(Purpose::cache, "/c");
    places.add(Purpose::cache, "/c");
    places.add(Purpose::output, "/c");
    EXPECT_EQ(places.folders.size(), 2U);
    EXPECT_EQ(places.output(), "/c");
    auto pictures = doctor::bucket_of_url("s3://b/some/where");
    EXPECT_EQ(pictures.options.bucket, "b");
    EXPECT_EQ(pictures.options.data_prefix, "some/where");
    pictures.is_written = false;
    places.add(pictures);
    places.add(doctor::bucket_of_url("s3://b/some/where"));
    places.add(doctor::bucket_of_url("s3://b"));
    ASSERT_EQ(places.buckets.size(), 2U);
    EXPECT_TRUE(places.buckets.front().is_written);
    EXPECT_THROW((void)doctor::bucket_of_url("s3:///x"), strata::Error);
    for (const auto purpose : {Purpose::folder, Purpose::output, Purpose::offload, Purpose::cache, Purpose::data})
        EXPECT_EQ(doctor::purpose_of(doctor::name_of(purpose)), purpose);
    EXPECT_FALSE(doctor::purpose_of("--own-host"));
}

TEST_F(DoctorJudgement, WhatRanksSayIsReadAgain) {
    doctor::SharedFolder shared{.sees_first = true, .failure = "", .owner = 65534, .clock_ahead = 3};
    Line other = doctor::warning("memory", "little", "more");
    other.values = {{"total", 5}};
    const std::string first =
        doctor::said_of_host("a", 1000, 100) + "a word of somebody else\nstrata-doctor {\"about\"\n" +
        doctor::said_of_library("Open MPI v4") + said_of(doctor::PairSpeed{"a", "rank 1", 1e-5, 2e9, -0.5, true}) +
        doctor::said_of_sum(64, 0.5) + doctor::said_of_unseen({1, 7}) + doctor::said_at_end();
    const std::string second = doctor::said_of_host("b", 0, 0) + said_of(shared) + said_of(std::vector{other}) +
                               doctor::said_of_failure("it waited") + "strata-doctor {\"about\": \"lines\"}";
    const auto reports = doctor::parse_reports({first, second, ""});
    ASSERT_EQ(reports.size(), 3U);
    EXPECT_EQ(reports[0].host, "a");
    EXPECT_EQ(reports[0].uid, 1000);
    EXPECT_EQ(reports[0].gid, 100);
    EXPECT_EQ(reports[0].library, "Open MPI v4");
    ASSERT_EQ(reports[0].pairs.size(), 1U);
    EXPECT_TRUE(reports[0].pairs[0].is_silent);
    EXPECT_EQ(reports[0].pairs[0].clock_ahead, -0.5);
    EXPECT_EQ(reports[0].sum_bytes, 64U);
    EXPECT_TRUE(reports[0].is_complete);
    ASSERT_TRUE(reports[1].shared);
    EXPECT_EQ(reports[1].shared->owner, 65534);
    EXPECT_TRUE(reports[1].shared->sees_first);
    EXPECT_FALSE(reports[1].shared->is_seen);
    ASSERT_EQ(reports[1].lines.size(), 1U);
    EXPECT_EQ(reports[1].lines[0].fix, "more");
    EXPECT_EQ(reports[1].lines[0].values.at("total"), 5);
    EXPECT_EQ(reports[1].failure, "it waited");
    EXPECT_FALSE(reports[1].is_complete);
    EXPECT_FALSE(reports[2].has_begun());
}

TEST_F(DoctorJudgement, HostsAndTheNetworkBetweenThem) {
    auto facts = two_hosts();
    auto lines = judge(facts);
    for (const Line& line : lines) EXPECT_EQ(static_cast<int>(line.state), 0) << line.found;
    expect(*find(lines, "ranks"), State::ok, {"2 ranks on a, b, by Open MPI v4.1.4"});
    expect(*find(lines, "network"), State::ok, {"between a and b: 20 us there and back, 1.2 GB/s"});
    expect(*find(lines, "all-reduce"), State::ok, {"2 ranks: 1.0 GB/s"});
    expect(*find(lines, "clocks"), State::ok, {"0.0 s"});
    expect(*find(lines, "shared folder"), State::ok, {"one folder for a, b"});

    facts.reports[0].pairs[0].clock_ahead = -90;
    expect(*find(judge(facts), "clocks"), State::warning, {"90.0 s", "b is behind a", "chrony"});
    facts.reports[0].pairs[0].bytes_per_second = 1.2e7;
    expect(*find(judge(facts), "network"), State::warning, {"12 MB/s"});
    facts.reports[0].pairs.push_back(
        {.from = "a", .to = "c", .seconds = 1e-5, .bytes_per_second = 1e10, .clock_ahead = 0});
    facts.reports[0].pairs[0].bytes_per_second = 1e9;
    expect(*find(judge(facts), "network"), State::warning, {"slowest a and b", "cables"});
    facts.reports[0].pairs = {{.from = "a", .to = "rank 1", .is_silent = true}};
    facts.reports[0].sum_seconds = 0;
    lines = judge(facts);
    expect(*find(lines, "network"), State::problem, {"rank 1 on b does not answer a", "btl_tcp_if_include"});
    expect(*find(lines, "all-reduce"), State::problem, {});
    EXPECT_EQ(find(lines, "clocks"), nullptr);

    facts = two_hosts();
    facts.reports[1].library = "Open MPI v5.0.1";
    expect(*find(judge(facts), "ranks"), State::problem, {"v4.1.4, Open MPI v5.0.1"});
    facts.reports[1].is_complete = false;
    facts.failure = "[ST2606] rank 1/2 on host b was ended by SIGBUS. Fix: more room.";
    expect(*find(judge(facts), "ranks"), State::problem,
           {"rank 1 on b has not said all: it ended before; [ST2606]", "dmesg of b"});
    facts.reports[0].library = facts.reports[1].library = "";
    facts.failure = "At least one pair is unable";
    expect(*find(judge(facts), "ranks"), State::problem, {"MPI has not started on them: At least one pair is unable"});
    facts.reports[1].failure = "rank 1 on b has waited 40 s for a file of every rank in /shared";
    expect(*find(judge(facts), "ranks"), State::problem, {"40 s", "file server"});
    facts.reports[1].failure = "rank 1 on b has waited 45 s for MPI to start";
    expect(*find(judge(facts), "ranks"), State::problem, {"45 s", "btl_tcp_if_include"});
    facts.reports[1] = {};
    facts.reports[1].rank = 1;
    facts.failure = "[ST2605] mpirun cannot start. Fix: install it.";
    expect(*find(judge(facts), "ranks"), State::problem,
           {"ranks 1 have not started: [ST2605] mpirun cannot start | install it"});
    facts.silent_hosts = {"c"};
    expect(judge(facts).front(), State::problem, {"c does not answer", "ssh -o BatchMode=yes c true"});
    facts.reports.clear();
    EXPECT_EQ(judge(facts).size(), 1U);
}

TEST_F(DoctorJudgement, AFolderThatIsNotSharedIsTold) {
    const auto judged = [](const doctor::RanksFacts& facts) { return *find(judge(facts), "shared folder"); };
    auto facts = two_hosts();
    facts.reports[1].shared->sees_first = false;
    expect(judged(facts), State::warning,
           {"another folder on b", "checkpoint is copied there", "/etc/exports", "2049"});
    facts = two_hosts();
    facts.reports[1].shared->is_seen = false;
    expect(judged(facts), State::warning, {"another folder on b"});
    facts.reports[1].shared->failure = "Read-only file system";
    expect(judged(facts), State::problem, {"b cannot write", "Read-only file system"});
    facts = two_hosts();
    facts.reports[1].shared.reset();
    expect(judged(facts), State::problem, {"has not answered on b"});
    facts = two_hosts();
    facts.reports[1].uid = facts.reports[1].shared->owner = 1001;
    expect(judged(facts), State::problem, {"a has uid 1000, b has uid 1001", "usermod"});
    facts = two_hosts();
    facts.reports[1].shared->owner = 65534;
    expect(judged(facts), State::warning, {"root_squash"});
    facts = two_hosts();
    facts.reports[1].shared->clock_ahead = 30;
    expect(judged(facts), State::warning, {"30.0 s ahead of b"});
    facts.reports[0].shared.reset();
    facts.reports[1].shared.reset();  // they have not come so far, which other lines say
    EXPECT_EQ(find(judge(facts), "shared folder"), nullptr);
    facts = two_hosts();
    facts.shared_folder.clear();
    EXPECT_EQ(find(judge(facts), "shared folder"), nullptr);
}

TEST_F(DoctorJudgement, WhatHangsIsNotWaitedFor) {
    const auto released = std::make_shared<std::promise<void>>();
    const auto hangs = [released] { return released->get_future().wait(), 1; };
    EXPECT_EQ(doctor::in_time(std::chrono::milliseconds{1}, hangs), std::nullopt);
    released->set_value();
    EXPECT_EQ(doctor::in_time(std::chrono::seconds{60}, [] { return 2; }), 2);
    EXPECT_THROW((void)doctor::in_time(std::chrono::seconds{60}, []() -> int { throw std::runtime_error{"x"}; }),
                 std::runtime_error);
}

TEST_F(DoctorJudgement, LinesAreAlignedAndCounted) {
    std::vector<Line> lines{doctor::ok("a", "well"), doctor::warning("longer", "so so", "do this"),
                            doctor::problem("b", "bad\x1b[31m", "that")};
    lines[0].host = "h";
    EXPECT_EQ(text_of(lines),
              "ok       h: a    well\n"
              "warning  longer  so so\n"
              "                 Fix: do this\n"
              "problem  b       bad\\x1b[31m\n"
              "                 Fix: that\n"
              "1 ok, 1 warnings, 1 problems\n");
    const auto json = json_of(lines);
    EXPECT_EQ(json.at("warnings"), 1);
    EXPECT_EQ(json.at("lines").at(1).at("fix"), "do this");
    EXPECT_EQ(json.at("lines").at(0).at("host"), "h");
    EXPECT_EQ(doctor::line_of(json.at("lines").at(2)).state, State::problem);
}

}  // namespace
