// tests/packages/packages_test.cpp - cmake/install-debian-packages.sh where another apt is at work: the apt of this machine, in a
// folder that holds all it reads and writes, with a dpkg that does nothing.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) { std::ofstream{file} << text; }
std::string text_of(const fs::path& file) {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// Standard output and error of a shell command, while it runs.
class Shell {
public:
    explicit Shell(const std::string& command) : pipe_{::popen((command + " 2>&1").c_str(), "r")} {}
    ~Shell() { status(); }
    Shell(const Shell&) = delete;
    Shell& operator=(const Shell&) = delete;
    /// Reads until `words` were said, or to the end.
    bool says(const std::string& words) {
        std::array<char, 512> line{};
        while (text.find(words) == std::string::npos && std::fgets(line.data(), line.size(), pipe_))
            text += line.data();
        return text.find(words) != std::string::npos;
    }
    int status() {
        if (!pipe_) return status_;
        says("no command says these words");
        const int status = ::pclose(std::exchange(pipe_, nullptr));
        return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::string text;

private:
    std::FILE* pipe_;
    int status_ = -1;
};

/// Held as apt holds its locks, by this process.
class Lock {
public:
    explicit Lock(const fs::path& file) : file_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640)} {
        struct flock whole {};
        whole.l_type = F_WRLCK;
        EXPECT_EQ(::fcntl(file_, F_SETLK, &whole), 0) << file;
    }
    ~Lock() { release(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void release() {
        if (file_ >= 0) ::close(std::exchange(file_, -1));
    }

private:
    int file_;
};

/// A folder with the script, a list of one package, and all that apt keeps.
class PrivateApt {
public:
    PrivateApt() {
        std::string name = (fs::temp_directory_path() / "strata-packages-XXXXXX").string();
        folder = ::mkdtemp(name.data());
        for (const char* inner : {"lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d",
                                  "dpkg", "mirror", "script", "bin"})
            fs::create_directories(folder / inner);
        fs::copy_file(STRATA_SOURCE_DIR "/cmake/install-debian-packages.sh",
                      folder / "script/install-debian-packages.sh");
        write(folder / "script/debian-packages.txt", "build strata-no-such-package\n");
        write(folder / "dpkg/status", "");
        const std::string all = folder.string();
        write(folder / "apt.conf", "Dir \"" + all + "\";\nDir::State \"" + all + "\";\nDir::State::Lists \"" + all +
                                       "/lists\";\nDir::State::status \"" + all + "/dpkg/status\";\nDir::Cache \"" +
                                       all + "/cache\";\nDir::Etc \"" + all + "/etc\";\nDir::Log \"" + all +
                                       "\";\nDir::Bin::dpkg \"/bin/true\";\nAPT::Sandbox::User \"\";\n");
        write(folder / "etc/sources.list", "deb [trusted=yes] file:" + all + "/mirror ./\n");
        write(folder / "mirror/it.deb", "the dpkg in here looks at nothing\n");
        Shell sum{"sha256sum " + all + "/mirror/it.deb"};
        sum.status();
        write(folder / "mirror/Packages",
              "Package: strata-no-such-package\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n"
              "Description: nothing\nFilename: ./it.deb\nSize: " +
                  std::to_string(fs::file_size(folder / "mirror/it.deb")) + "\nSHA256: " + sum.text.substr(0, 64) +
                  "\n");
        // Nobody needs to be root in here.
        write(folder / "bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
        fs::permissions(folder / "bin/sudo", fs::perms::owner_all);
    }
    ~PrivateApt() { fs::remove_all(folder); }
    PrivateApt(const PrivateApt&) = delete;
    PrivateApt& operator=(const PrivateApt&) = delete;
    [[nodiscard]] std::string script(const std::string& settings = "") const {
        const std::string all = folder.string();
        return "APT_CONFIG=" + all + "/apt.conf PATH=" + all + "/bin:$PATH " + settings + " bash " + all +
               "/script/install-debian-packages.sh build";
    }
    [[nodiscard]] bool has_installed() const {
        return text_of(folder / "history.log").find("Install: strata-no-such-package:") != std::string::npos;
    }
    fs::path folder;
};

std::string this_process() { return "(process " + std::to_string(::getpid()) + ")"; }

#define SKIP_WITHOUT_APT() \
    if (!fs::exists("/usr/bin/apt-get")) GTEST_SKIP() << "no apt-get on this machine"

TEST(Packages, InstallsWhatIsMissingWithoutAWordOfWaiting) {
    SKIP_WITHOUT_APT();
    const PrivateApt apt;
    Shell script{apt.script()};
    EXPECT_EQ(script.status(), 0) << script.text;
    EXPECT_EQ(script.text, "== packages: installing strata-no-such-package\n");
    EXPECT_TRUE(apt.has_installed());
}

TEST(Packages, WaitsForWhoeverHoldsALockAndSaysForWhom) {
    SKIP_WITHOUT_APT();
    // dpkg's, for which apt can wait by itself; that of the package lists, for which it cannot.
    for (const char* name : {"dpkg/lock-frontend", "lists/lock"}) {
        const PrivateApt apt;
        Lock held{apt.folder / name};
        Shell script{apt.script()};
        EXPECT_TRUE(script.says("== packages: waiting for ")) << name << ": " << script.text;
        held.release();
        EXPECT_EQ(script.status(), 0) << name << ": " << script.text;
        EXPECT_NE(script.text.find(this_process() + ", which holds " + (apt.folder / name).string() + "\n"),
                  std::string::npos)
            << script.text;
        EXPECT_TRUE(apt.has_installed()) << name;
    }
}

TEST(Packages, GivesUpWithTheNameOfTheHolder) {
    SKIP_WITHOUT_APT();
    const PrivateApt apt;
    const Lock held{apt.folder / "dpkg/lock-frontend"};
    Shell script{apt.script("STRATA_APT_PATIENCE=0")};
    EXPECT_EQ(script.status(), 1) << script.text;
    EXPECT_NE(script.text.find(this_process() + " still holds " + (apt.folder / "dpkg/lock-frontend").string() +
                               " after 0 s. Fix: "),
              std::string::npos)
        << script.text;
    EXPECT_FALSE(apt.has_installed());
}

}  // namespace
