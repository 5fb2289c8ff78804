#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <strata/train/huge_pages.hpp>

namespace {

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

TEST(HugePages, LargeTensorsAskForThemAndSmallOnesDoNot) {
    std::ifstream setting{"/sys/kernel/mm/transparent_hugepage/enabled"};
    std::string is_on;
    if (!std::getline(setting, is_on)) GTEST_SKIP() << "this system has no huge pages that a program may ask for";
    strata::train::use_huge_pages();
    strata::train::use_huge_pages();  // once
    constexpr std::int64_t megabytes = std::int64_t{1} << 20;
    const at::Tensor large = at::empty({64 * megabytes}, at::kByte);
    const at::Tensor small = at::empty({64 * 1024}, at::kByte);
    const auto middle = [](const at::Tensor& tensor) {
        return static_cast<const std::byte*>(tensor.data_ptr()) + tensor.numel() / 2;
    };
    EXPECT_NE(flags_at(middle(large)).find(" hg"), std::string::npos) << flags_at(middle(large));
    EXPECT_EQ(flags_at(middle(small)).find(" hg"), std::string::npos) << flags_at(middle(small));
    EXPECT_EQ(large.clone().numel(), large.numel());
}

}  // namespace
