#pragma once
// tests/mpi/output_folder.hpp - OutputFolder: a folder that all ranks agree on and rank 0 makes anew and removes.

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include <strata/comm/default_comm.hpp>

namespace strata_test {

struct OutputFolder : testing::Test {
    strata::comm::DefaultComm comm;
    std::filesystem::path root;

    void SetUp() override {
        const auto name = std::filesystem::path{testing::TempDir()} / ("strata_output_" + std::to_string(::getpid()));
        root = comm.all_gather_varied(name.string()).front();
        if (comm.rank() == 0) std::filesystem::remove_all(root);
        comm.barrier();
    }
    void TearDown() override {
        comm.barrier();
        if (comm.rank() == 0) std::filesystem::remove_all(root);
    }
};

}  // namespace strata_test
