// tests/mpi/main.cpp - gtest on every rank of an MPI job: rank 0 tells the story, the others only what went wrong.
//
//   --suites=A,B   runs these test suites, plain, typed and parameterised; one that has no test is a failure

#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <gtest/gtest.h>

namespace {

/// Prints failures with the rank in front, and nothing else.
class OnlyFailures final : public testing::EmptyTestEventListener {
public:
    explicit OnlyFailures(int rank) : rank_{rank} {}

    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        const char* file = result.file_name() == nullptr ? "unknown file" : result.file_name();
        std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, file, result.line_number(), result.summary());
    }
    void OnTestEnd(const testing::TestInfo& test) override {
        if (!test.result()->Failed()) return;
        std::fprintf(stderr, "rank %d: %s.%s failed\n", rank_, test.test_suite_name(), test.name());
    }

private:
    int rank_;
};

/// Ends the job when an exception leaves a test on one rank: the others may be waiting for that rank in the middle of
/// it.
class AbortOnException final : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (result.fatally_failed() && result.file_name() == nullptr) MPI_Abort(MPI_COMM_WORLD, 1);
    }
};

bool is_of_suite(std::string_view found, const std::string& wanted) {
    return found == wanted || found.starts_with(wanted + "/") || found.ends_with("/" + wanted) ||
           found.find("/" + wanted + "/") != std::string_view::npos;
}

/// Chooses the suites; false where there is none of a name.
bool choose(const std::string& suites) {
    auto& all = *testing::UnitTest::GetInstance();
    std::string filter;
    std::istringstream names{suites};
    for (std::string name; std::getline(names, name, ',');) {
        bool is_there = false;
        for (int i = 0; i < all.total_test_suite_count(); ++i) {
            const std::string found = all.GetTestSuite(i)->name();
            if (!is_of_suite(found, name)) continue;
            is_there = true;
            filter += found + ".*:";
        }
        if (is_there) continue;
        std::fprintf(stderr, "no test is in the suite %s\n", name.c_str());
        return false;
    }
    GTEST_FLAG_SET(filter, filter);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    testing::InitGoogleTest(&argc, argv);

    constexpr std::string_view option = "--suites=";
    for (int i = 1; i < argc; ++i)
        if (std::string_view{argv[i]}.starts_with(option) && !choose(argv[i] + option.size())) return 1;

    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (rank != 0) {
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new OnlyFailures{rank});
    }
    listeners.Append(new AbortOnException);

    const int mine = RUN_ALL_TESTS();
    int worst = 0;
    MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return worst;
}
