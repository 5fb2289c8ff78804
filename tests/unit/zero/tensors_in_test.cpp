// Which tensors are found in a value, in which order, and which types cannot be looked into.

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <strata/zero/tensors_in.hpp>

namespace user {

struct Streams {
    at::Tensor image;
    std::optional<at::Tensor> text;
    int steps = 0;
};
template <class Self, class Call>
requires std::same_as<std::remove_const_t<Self>, Streams>
void visit_tensors(Self& streams, Call&& call) {
    call(streams.image);
    call(streams.text);
    call(streams.steps);
}

struct Batch {
    std::vector<Streams> parts;
};
template <class Self, class Call>
requires std::same_as<std::remove_const_t<Self>, Batch>
void visit_tensors(Self& batch, Call call) { call(batch.parts); }

struct Closed {
    at::Tensor hidden;
};
struct HalfOpen {  // const ones cannot be walked
    at::Tensor tensor;
};
template <class Call>
void visit_tensors(HalfOpen& value, Call&& call) {
    call(value.tensor);
}

enum class Mode { off, on };

}  // namespace user

namespace greedy {

struct One {
    at::Tensor tensor;
};
template <class Self, class Call>
void visit_tensors(Self& one, Call&& call) {  // says it takes containers of One, too
    call(one.tensor);
}

}  // namespace greedy

namespace {

using at::Tensor;
using strata::zero::for_each_tensor;
using strata::zero::holds_tensors_v;
using strata::zero::knows_tensors_v;
using strata::zero::tensors_in_v;
using strata::zero::TensorsIn;

template <class... Ts>
constexpr bool all_are(TensorsIn what) {
    return ((tensors_in_v<Ts> == what) && ...);
}
static_assert(
    all_are<Tensor, const Tensor, Tensor&, const Tensor&, Tensor&&, std::optional<Tensor>, std::vector<Tensor>,
            std::array<Tensor, 2>, std::pair<Tensor, int>, std::tuple<int, Tensor&>, user::Streams, const user::Batch&,
            std::vector<std::pair<std::string, std::optional<user::Streams>>>>(TensorsIn::some));
static_assert(all_are<bool, int, std::int64_t, double, user::Mode, at::ScalarType, std::nullptr_t, std::nullopt_t,
                      std::string, const std::string&, std::string_view, const char*, at::Scalar, at::Device,
                      at::BFloat16, std::vector<bool>, std::vector<std::int64_t>, std::optional<double>, std::tuple<>,
                      std::pair<int, std::string>>(TensorsIn::none));
static_assert(all_are<user::Closed, user::HalfOpen, user::Closed*, std::shared_ptr<Tensor>, std::map<int, Tensor>,
                      std::vector<user::Closed>, std::pair<Tensor, user::Closed>, std::tuple<user::Closed, Tensor>,
                      std::optional<std::vector<user::Closed>>>(TensorsIn::unknown));
static_assert(holds_tensors_v<Tensor> && !holds_tensors_v<int> && !holds_tensors_v<user::Closed>);
static_assert(knows_tensors_v<Tensor> && knows_tensors_v<int> && !knows_tensors_v<user::Closed>);

Tensor number(int value) { return at::full({}, value); }

template <class Value>
std::vector<int> numbers_in(Value&& value) {
    std::vector<int> result;
    for_each_tensor(std::forward<Value>(value), [&](const Tensor& tensor) { result.push_back(tensor.item<int>()); });
    return result;
}
using Numbers = std::vector<int>;

TEST(TensorsIn, AreFoundInEveryKindOfValueInOrder) {
    EXPECT_EQ(numbers_in(number(1)), Numbers{1});
    EXPECT_EQ(numbers_in(std::optional{number(2)}), Numbers{2});
    EXPECT_EQ(numbers_in(std::vector{number(3), number(1)}), (Numbers{3, 1}));
    EXPECT_EQ(numbers_in(std::array{number(4), number(5)}), (Numbers{4, 5}));
    EXPECT_EQ(numbers_in(std::pair{number(6), 0.5}), Numbers{6});
    EXPECT_EQ(numbers_in(std::tuple{number(7), std::string{"text"}, number(8)}), (Numbers{7, 8}));
    EXPECT_EQ(numbers_in(std::tuple{std::vector{std::optional{number(1)}, std::optional{number(2)}},
                                    std::pair{number(3), std::array{number(4), number(5)}}, number(6)}),
              (Numbers{1, 2, 3, 4, 5, 6}));
}

TEST(TensorsIn, UndefinedAndAbsentOnesAreLeftOut) {
    EXPECT_EQ(numbers_in(Tensor{}), Numbers{});
    EXPECT_EQ(numbers_in(std::optional<Tensor>{}), Numbers{});
    EXPECT_EQ(numbers_in(std::optional{Tensor{}}), Numbers{});
    EXPECT_EQ(numbers_in(std::vector{Tensor{}, number(1), Tensor{}, number(2)}), (Numbers{1, 2}));
    EXPECT_EQ(numbers_in(std::vector<Tensor>{}), Numbers{});
}

TEST(TensorsIn, OtherValuesArePassedOver) {
    EXPECT_EQ(numbers_in(3), Numbers{});
    EXPECT_EQ(numbers_in(std::vector<bool>{true, false}), Numbers{});
    EXPECT_EQ(numbers_in(std::string{"text"}), Numbers{});
    EXPECT_EQ(numbers_in(std::tuple{user::Closed{number(1)}, number(2), std::make_shared<Tensor>(number(3))}),
              Numbers{2});
}

TEST(TensorsIn, AUsersTypeJoinsInByVisitTensors) {
    user::Streams streams{number(1), number(2), 3};
    EXPECT_EQ(numbers_in(streams), (Numbers{1, 2}));
    EXPECT_EQ(numbers_in(std::as_const(streams)), (Numbers{1, 2}));
    EXPECT_EQ(numbers_in(user::Streams{number(1), std::nullopt, 3}), Numbers{1});
    EXPECT_EQ(numbers_in(std::vector{greedy::One{number(1)}, greedy::One{number(2)}}), (Numbers{1, 2}));
    const user::Batch batch{{streams, {number(4), number(5), 0}}};
    EXPECT_EQ(numbers_in(std::pair{std::optional{batch}, number(6)}), (Numbers{1, 2, 4, 5, 6}));
}

TEST(TensorsIn, CanBeReplacedInPlace) {
    std::tuple<std::vector<Tensor>, std::optional<user::Streams>, Tensor> value{
        {number(1), number(2)}, user::Streams{number(3), number(4), 0}, number(5)};
    for_each_tensor(value, [](Tensor& tensor) { tensor = number(tensor.item<int>() * 10); });
    EXPECT_EQ(numbers_in(value), (Numbers{10, 20, 30, 40, 50}));
}

TEST(TensorsIn, ReferencesReachTheTensorsTheyReferTo) {
    Tensor first = number(1);
    std::vector<Tensor> rest{number(2)};
    for_each_tensor(std::forward_as_tuple(first, rest), [](Tensor& tensor) { tensor = number(7); });
    EXPECT_EQ(first.item<int>(), 7);
    EXPECT_EQ(rest[0].item<int>(), 7);
}

TEST(TensorsIn, AreConstWhereTheValueIs) {
    struct Kinds {
        int constant = 0, mutable_ = 0;
        void operator()(const Tensor&) { ++constant; }
        void operator()(Tensor&) { ++mutable_; }
    };
    const auto kinds = [](auto&& value) {
        Kinds found;
        for_each_tensor(value, found);
        return std::pair{found.constant, found.mutable_};
    };
    using Counts = std::pair<int, int>;
    const Tensor constant = number(1);
    Tensor plain = number(2);
    EXPECT_EQ(kinds(constant), Counts(1, 0));
    EXPECT_EQ(kinds(plain), Counts(0, 1));
    EXPECT_EQ(kinds(std::vector{plain}), Counts(0, 1));
    EXPECT_EQ(kinds(std::as_const(*std::make_unique<std::vector<Tensor>>(2, plain))), Counts(2, 0));
    EXPECT_EQ(kinds(std::pair<const Tensor, Tensor>{plain, plain}), Counts(1, 1));
    EXPECT_EQ(kinds(std::tie(plain, constant)), Counts(1, 1));
    const user::Streams streams{plain, plain, 0};
    EXPECT_EQ(kinds(streams), Counts(2, 0));
    EXPECT_EQ(kinds(user::Streams{streams}), Counts(0, 2));
}

}  // namespace
