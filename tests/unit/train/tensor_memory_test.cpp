#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <strata/core/kept_blocks.hpp>
#include <strata/train/tensor_memory.hpp>

namespace {

constexpr std::int64_t megabytes = std::int64_t{1} << 20;

/// What the kernel says of the mapping that an address is in: "rd wr mr mw me ac hg ".
std::string flags_at(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps{"/proc/self/smaps"};
    bool is_there = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        char dash = 0;
        std::istringstream range{line};
        if (range >> std::hex >> begin >> dash >> end && dash == '-') is_there = begin <= wanted && wanted < end;
        if (is_there && line.starts_with("VmFlags:")) return line.substr(8);
    }
    return {};
}

TEST(TensorMemory, LargeTensorsAskForHugePagesAndSmallOnesDoNot) {
    std::ifstream setting{"/sys/kernel/mm/transparent_hugepage/enabled"};
    std::string is_on;
    if (!std::getline(setting, is_on)) GTEST_SKIP() << "this system has no huge pages that a program may ask for";
    strata::train::keep_tensor_memory();
    strata::train::keep_tensor_memory();  // once
    const at::Tensor large = at::empty({64 * megabytes}, at::kByte);
    const at::Tensor small = at::empty({64 * 1024}, at::kByte);
    const auto middle = [](const at::Tensor& tensor) {
        return static_cast<const std::byte*>(tensor.data_ptr()) + tensor.numel() / 2;
    };
    EXPECT_NE(flags_at(middle(large)).find(" hg"), std::string::npos) << flags_at(middle(large));
    EXPECT_EQ(flags_at(middle(small)).find(" hg"), std::string::npos) << flags_at(middle(small));
    EXPECT_EQ(large.clone().numel(), large.numel());
}

TEST(TensorMemory, ATensorTakesTheMemoryThatOneOfItsSizeHad) {
    strata::train::keep_tensor_memory();
    strata::core::give_back_memory();  // what other tests have left
    const void* first = nullptr;
    {
        const at::Tensor tensor = at::ones({8 * megabytes}, at::kByte);
        first = tensor.data_ptr();
    }
    EXPECT_EQ(strata::core::kept_blocks().bytes_kept(), static_cast<std::size_t>(8 * megabytes));
    at::Tensor second = at::empty({8 * megabytes}, at::kByte);
    EXPECT_EQ(second.data_ptr(), first);
    // It grows in place of a new tensor, as results of libtorch do: through memory whose size the allocator has to know.
    second.resize_({16 * megabytes}).fill_(1);
    EXPECT_EQ(second.sum().item<std::int64_t>(), 16 * megabytes);
    second.reset();
    strata::core::give_back_memory();
    EXPECT_EQ(strata::core::kept_blocks().bytes_kept(), 0U);
}

}  // namespace
