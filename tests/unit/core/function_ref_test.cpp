// What FunctionRef calls: the object itself, with its arguments as they were given.

#include <strata/core/function_ref.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace {

using strata::core::FunctionRef;

int twice_of(FunctionRef<int(int)> call) { return call(1) + call(2); }

TEST(FunctionRef, CallsTheObjectAndNoCopyOfIt) {
    int calls = 0;
    const auto counts = [&calls, own = std::make_unique<int>(10)](int x) {
        ++calls;
        return *own * x;
    };
    EXPECT_EQ(twice_of(counts), 30);
    EXPECT_EQ(calls, 2);
    auto changes = [last = 0](int x) mutable { return std::exchange(last, x); };
    EXPECT_EQ(twice_of(changes), 1);
    EXPECT_EQ(changes(0), 2) << "what it was called with last is kept in the object";
}

TEST(FunctionRef, ACopyRefersToTheSameObject) {
    int sum = 0;
    const auto adds = [&sum](int x) { sum += x; };
    const FunctionRef<void(int)> first{adds};
    const FunctionRef<void(int)> second = first;
    first(1);
    second(2);
    EXPECT_EQ(sum, 3);
}

TEST(FunctionRef, HandsArgumentsAndResultOnAsTheyAre) {
    const auto takes = [](std::unique_ptr<int> number, std::string& text) -> std::string& {
        text += std::to_string(*number);
        return text;
    };
    std::string text = "n";
    const FunctionRef<std::string&(std::unique_ptr<int>, std::string&)> call{takes};
    EXPECT_EQ(&call(std::make_unique<int>(7), text), &text);
    EXPECT_EQ(text, "n7");
}

TEST(FunctionRef, IsMadeOfWhatCanBeCalledSoAndNothingElse) {
    using Call = FunctionRef<int(int)>;
    EXPECT_TRUE((std::is_constructible_v<Call, decltype([](int x) { return x; })>));
    EXPECT_FALSE((std::is_constructible_v<Call, decltype([](std::string x) { return x; })>));
    EXPECT_FALSE((std::is_constructible_v<Call, int>));
}

}  // namespace
