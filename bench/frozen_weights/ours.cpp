// bench/frozen_weights/ours.cpp - dequantising a unit's frozen weights, beside a copy of as many bytes and libtorch's operations.
//
// One thread. The matrix is one of a large block's, so that nothing of it stays in a cache. The three take turns; ratios are medians over
// rounds of neighbours.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <strata/core/elements.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/codecs/nf4.hpp>
#include <strata/zero/detail/preparation.hpp>

#include "../measure.hpp"

namespace {

using strata::zero::MatrixShape;

std::vector<float> weights(std::int64_t numel) {
    std::vector<float> values(static_cast<std::size_t>(numel));
    std::uint32_t state = 1;
    for (float& value : values) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-34F;
    }
    return values;
}

template <class Format, class Element>
int compare(const std::vector<float>& values, MatrixShape shape, int rounds) {
    using Codec = typename Format::codec;
    const auto dtype = strata::zero::detail::dtype_v<Element>;
    const at::Tensor packed = at::empty({Codec::bytes(shape)}, at::TensorOptions{}.dtype(at::kByte));
    auto* const bytes = static_cast<std::byte*>(packed.data_ptr());
    bool is_finite = true;
    const double quantising = bench::seconds_of([&] { is_finite = Codec::quantise(values.data(), shape, bytes); });
    const at::Tensor ours = at::empty({shape.numel()}, at::TensorOptions{}.dtype(dtype)).zero_();
    const at::Tensor theirs = at::empty({shape.numel()}, at::TensorOptions{}.dtype(dtype)).zero_();
    const at::Tensor copied = at::empty({shape.numel()}, at::TensorOptions{}.dtype(dtype)).zero_();
    std::vector<double> us, copy, plain;
    for (int round = 0; round < rounds; ++round) {
        us.push_back(
            bench::seconds_of([&] { Codec::dequantise(bytes, shape, static_cast<Element*>(ours.data_ptr())); }));
        copy.push_back(bench::seconds_of([&] { std::memcpy(copied.data_ptr(), theirs.data_ptr(), theirs.nbytes()); }));
        plain.push_back(bench::seconds_of([&] { Codec::dequantise_on_device(packed, shape, theirs); }));
    }
    const bool same = is_finite && std::memcmp(ours.data_ptr(), theirs.data_ptr(), ours.nbytes()) == 0;
    const double gigabytes = static_cast<double>(ours.nbytes()) * 1e-9;
    std::printf(
        "{\"format\": \"%s\", \"to\": \"%s\", \"gb_per_s\": %.2f, \"of_memcpy\": %.2f, \"times_faster_than_libtorch\": %.1f, "
        "\"quantise_ns_per_weight\": %.2f, \"same_bits\": %s}\n",
        Format::name, c10::toString(dtype), gigabytes / bench::median(us), bench::median_ratio(copy, us),
        bench::median_ratio(plain, us), quantising * 1e9 / static_cast<double>(shape.numel()), same ? "true" : "false");
    return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    at::set_num_threads(1);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
    const MatrixShape shape{9216, 3072};
    const auto values = weights(shape.numel());
    return compare<strata::Int8, float>(values, shape, rounds) +
           compare<strata::Int8, strata::bf16>(values, shape, rounds) +
           compare<strata::Nf4, float>(values, shape, rounds) +
           compare<strata::Nf4, strata::bf16>(values, shape, rounds) +
           compare<strata::Nf4, strata::fp16>(values, shape, rounds);
}
