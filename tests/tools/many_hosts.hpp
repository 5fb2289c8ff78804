#pragma once
// tests/tools/many_hosts.hpp - ManyHosts: `strata launch` on many hosts, which here are processes of this machine. Every wait polls for what
// must happen; none is a guess.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>

#include "run_tool.hpp"

namespace strata_test {

inline constexpr std::chrono::seconds deadline{100};

/// Also where nobody asks for its end: the first process of a container may not, and then it stays as a zombie.
inline bool has_ended(pid_t process) {
    const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
    const std::size_t name_ends = stat.rfind(')');
    return name_ends == std::string::npos || stat.substr(name_ends, 3) == ") Z";
}

struct ManyHosts : ::testing::Test {
    std::filesystem::path folder =
        std::filesystem::path{::testing::TempDir()} / ("strata_hosts_" + std::to_string(::getpid()));
    std::map<std::string, std::unique_ptr<Running>> running;

    void SetUp() override {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder / "tmp");
        ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
        ::setenv("STRATA_LAUNCH_SECRET", "a secret of this test", 1);
        ::unsetenv("OMP_NUM_THREADS");
        ::unsetenv("SLURM_JOB_NODELIST");
    }
    void TearDown() override {
        running.clear();
        for (const char* name : {"STRATA_LAUNCH_SECRET", "TMPDIR"}) ::unsetenv(name);
        std::error_code busy;  // an mpirun whose launcher was killed may still be removing its own folder in there
        for (int i = 0; i < 400 && (std::filesystem::remove_all(folder, busy), busy); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
        EXPECT_FALSE(busy) << busy.message();
    }

    static bool eventually(const std::function<bool()>& happened) {
        for (const auto until = std::chrono::steady_clock::now() + deadline;
             std::chrono::steady_clock::now() < until;) {
            if (happened()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
        return happened();
    }
    bool appears(const std::string& file) const {
        return eventually([&] { return std::filesystem::exists(folder / file); });
    }
    bool says(const std::string& who, const std::string& text, int times = 1) const {
        return eventually([&] {
            const std::string all = text_of(folder / who / "out.txt") + text_of(folder / who / "err.txt");
            int found = 0;
            for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
            return found >= times;
        });
    }
    std::string errors_of(const std::string& who) const { return text_of(folder / who / "err.txt"); }

    /// strata launch with these words, as `who`, whose output is in a folder of that name.
    void start(const std::string& who, std::vector<std::string> words) {
        running.erase(who);
        std::filesystem::create_directories(folder / who);
        std::filesystem::create_directories(folder / "tmp" / who);
        ::setenv("TMPDIR", (folder / "tmp" / who).c_str(), 1);
        words.insert(words.begin(), {STRATA_TOOL, "launch"});
        running[who] = std::make_unique<Running>(words, folder / who);
    }
    Outcome finish(const std::string& who) {
        Running& one = *running.at(who);
        if (!eventually([&] { return one.has_ended(); })) one.signal(SIGKILL);
        const Outcome outcome = one.wait();
        running.erase(who);
        return outcome;
    }
    Outcome run(std::vector<std::string> words) {
        start("first", std::move(words));
        return finish("first");
    }

    std::string script(const std::string& name, const std::string& text) const {
        std::ofstream{folder / name} << "#!/bin/sh\n" << text << "\n";
        ::chmod((folder / name).c_str(), 0755);
        return (folder / name).string();
    }
    /// A hostfile, and a remote shell for which all hosts are this one; it writes down what it is asked.
    std::vector<std::string> on_hosts(const std::string& lines) const {
        std::ofstream{folder / "hosts"} << lines;
        // Each has temporary files of its own, as hosts have: Open MPI's daemons take one folder for one host's, and away.
        const std::string shell = script(
            "shell", "echo \"$@\" >> '" + (folder / "asked").string() + "'\nTMPDIR='" + (folder / "tmp").string() +
                         "/'$1\nmkdir -p \"$TMPDIR\"\nexport TMPDIR\nshift\n" + "exec sh -c \"$*\"");
        return {"--hostfile", (folder / "hosts").string(), "--remote-shell", shell};
    }
    /// An Accelerate YAML for nodes that are each started by themselves; every call gives another port.
    std::string yaml(int machines, int processes) const {
        const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t size = sizeof address;
        ::bind(probe, reinterpret_cast<const sockaddr*>(&address), size);
        ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
        ::close(probe);
        const std::filesystem::path file = folder / "accelerate.yaml";
        std::ofstream{file} << "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmachine_rank: 0\n"
                            << "main_process_ip: 127.0.0.1\nmain_process_port: " << ntohs(address.sin_port)
                            << "\nnum_machines: " << machines << "\nnum_processes: " << processes << "\n";
        return file.string();
    }
    void start_node(const std::string& who, const std::string& file, int machine_rank,
                    const std::vector<std::string>& program, const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"--config", file, "--machine-rank", std::to_string(machine_rank)};
        words.insert(words.end(), more.begin(), more.end());
        words.emplace_back("--");
        words.insert(words.end(), program.begin(), program.end());
        start(who, words);
    }
    std::vector<std::string> program(const std::string& what, std::vector<std::string> more = {}) const {
        std::vector<std::string> words{STRATA_LAUNCHED_PROGRAM, what, folder.string()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    static std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    void expect_error(const Outcome& outcome, int status, const std::string& number,
                      const std::vector<std::string>& words) const {
        EXPECT_EQ(outcome.status, status) << outcome.out << outcome.err;
        EXPECT_NE(outcome.err.find("[" + number + "]"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
        for (const std::string& word : words)
            EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " in " << outcome.err;
    }
};

inline std::string code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const strata::Error& error) {
        return std::string{error.what()}.substr(0, 8);
    }
    return "nothing";
}

}  // namespace strata_test
