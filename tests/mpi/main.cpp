// tests/mpi/main.cpp - gtest on every rank of an MPI job: rank 0 tells the story, the others only what went wrong.

#include <cstdio>

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

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    testing::InitGoogleTest(&argc, argv);

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
