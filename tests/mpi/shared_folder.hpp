#pragma once
// tests/mpi/shared_folder.hpp - SharedFolder: a folder that all ranks see, made and removed by rank 0.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace strata_test {

/// Collective, both ways. Empty at first.
template <class Comm>
struct SharedFolder {
    explicit SharedFolder(Comm& comm_) : comm{comm_} {
        const auto mine = std::filesystem::path{testing::TempDir()} / ("strata_shared_" + std::to_string(::getpid()));
        path = comm.all_gather_varied(mine.string()).front();
        if (comm.rank() == 0) {
            std::filesystem::remove_all(path);
            std::filesystem::create_directories(path);
        }
        comm.barrier();
    }
    ~SharedFolder() {
        comm.barrier();
        if (comm.rank() == 0) std::filesystem::remove_all(path);
    }
    SharedFolder(const SharedFolder&) = delete;
    SharedFolder& operator=(const SharedFolder&) = delete;
    Comm& comm;
    std::filesystem::path path;
};

}  // namespace strata_test
