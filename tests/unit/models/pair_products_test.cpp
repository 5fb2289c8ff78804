// Products of bf16 by pairs against sums in fp64: every way that operands lie, sizes that fill no tile, sums of several products.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/models/detail/pair_walk.hpp>
#include <strata/models/pair_products.hpp>

namespace {

using strata::bf16;
using strata::models::detail::for_pair_blocks;
namespace kernels = strata::models::kernels;

/// Numbers of bf16, rows or columns dense.
struct Matrix {
    std::vector<bf16> numbers;
    kernels::PairOperand operand;

    Matrix(std::int64_t rows, std::int64_t columns, bool has_dense_rows, unsigned seed) {
        std::mt19937 random{seed};
        std::normal_distribution<float> normal;
        // One more than is used, so that what lies beside it would be seen.
        const std::int64_t length = (has_dense_rows ? columns : rows) + 1;
        numbers.resize(static_cast<std::size_t>((has_dense_rows ? rows : columns) * length));
        for (bf16& number : numbers) number = strata::to_bf16(normal(random));
        operand = {numbers.data(), has_dense_rows ? length : 1, has_dense_rows ? 1 : length};
    }
    [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
        return strata::to_float(operand.numbers[row * operand.row_stride + column * operand.column_stride]);
    }
};

struct Product {
    Matrix a, b;
    std::int64_t K;
};

/// A bf16 that no sum gives.
constexpr bf16 untouched{0x7f81};

/// The sum of products, and beside it what is expected of each number: the nearest bf16 to the exact sum, or the next to it
/// where fp32 has lost something of what its terms are in total.
void expect_sum(const std::vector<Product>& products, std::int64_t M, std::int64_t N, bool has_bias) {
    std::vector<kernels::PairTerm> sum;
    std::string what = std::to_string(M) + " x " + std::to_string(N);
    for (const Product& one : products) {
        sum.push_back({one.a.operand, one.b.operand, one.K});
        what += ", " + std::to_string(one.K) + " terms" + (one.a.operand.row_stride == 1 ? ", a transposed" : "") +
                (one.b.operand.row_stride == 1 ? ", b transposed" : "");
    }
    const Matrix bias{1, N, true, 5};
    const std::int64_t stride = N + 3;
    std::vector<bf16> y(static_cast<std::size_t>(M * stride), untouched);
    for_pair_blocks({y.data(), stride, has_bias ? bias.operand.numbers : nullptr}, M, N, sum);
    for (std::int64_t row = 0; row < M; ++row) {
        for (std::int64_t column = 0; column < N; ++column) {
            double exact = has_bias ? bias.at(0, column) : 0, size = std::abs(exact);
            for (const Product& one : products)
                for (std::int64_t k = 0; k < one.K; ++k) {
                    const double term = one.a.at(row, k) * one.b.at(k, column);
                    exact += term;
                    size += std::abs(term);
                }
            const double bound = std::abs(exact) * (0x1p-8 * 1.001) + size * 0x1p-20 + 1e-30;
            ASSERT_LE(std::abs(strata::to_float(y[static_cast<std::size_t>(row * stride + column)]) - exact), bound)
                << what << ", row " << row << ", column " << column;
        }
        for (std::int64_t beyond = N; beyond < stride; ++beyond)
            ASSERT_EQ(y[static_cast<std::size_t>(row * stride + beyond)], untouched) << what << ", behind row " << row;
    }
}

class PairProducts : public testing::Test {
protected:
    void SetUp() override {
        if (!kernels::has_pair_products()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
    }
};

TEST_F(PairProducts, EverySumIsRoundedOnceHoweverItsOperandsLie) {
    struct Size {
        std::int64_t M, N, K;
    };
    const std::array sizes{Size{1, 1, 1},    Size{7, 9, 5},       Size{8, 48, 32},    Size{17, 50, 33},
                           Size{33, 16, 64}, Size{70, 100, 1023}, Size{24, 97, 1024}, Size{9, 31, 1025}};
    for (const Size& size : sizes)
        for (const bool a_rows : {true, false})
            for (const bool b_rows : {true, false})
                expect_sum({{Matrix{size.M, size.K, a_rows, 1}, Matrix{size.K, size.N, b_rows, 2}, size.K}}, size.M,
                           size.N, (size.M + size.N) % 2 == 0);
}

TEST_F(PairProducts, SumsOfSeveralProductsAndOfNoTerms) {
    for (const bool b_rows : {true, false})
        expect_sum({{Matrix{19, 700, true, 1}, Matrix{700, 60, b_rows, 2}, 700},
                    {Matrix{19, 1, true, 3}, Matrix{1, 60, b_rows, 4}, 1},
                    {Matrix{19, 513, false, 5}, Matrix{513, 60, b_rows, 6}, 513}},
                   19, 60, true);
    expect_sum({{Matrix{4, 0, true, 1}, Matrix{0, 20, true, 2}, 0}}, 4, 20, true);
}

TEST_F(PairProducts, ABlocksPlaceAndSizeChangeNoBit) {
    const std::int64_t M = 130, N = 200, K = 1500;
    const Matrix a{M, K, true, 1}, b{K, N, false, 2};
    const std::array sum{kernels::PairTerm{a.operand, b.operand, K}};
    const kernels::PairBlockSize most = kernels::pair_block_size(sum);
    EXPECT_EQ(most.rows % 16, 0);
    EXPECT_EQ(most.columns % 48, 0);
    std::vector<bf16> whole(static_cast<std::size_t>(M * N)), parts(whole);
    kernels::pair_product({whole.data(), N}, sum, {.rows = M, .columns = N});
    for (std::int64_t row = 0; row < M; row += 48)
        for (std::int64_t column = 0; column < N; column += 96)
            kernels::pair_product({parts.data(), N}, sum,
                                  {.row = row,
                                   .rows = std::min<std::int64_t>(48, M - row),
                                   .column = column,
                                   .columns = std::min<std::int64_t>(96, N - column)});
    EXPECT_EQ(whole, parts);
}

}  // namespace
