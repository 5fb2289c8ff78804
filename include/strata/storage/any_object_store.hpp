#pragma once
// strata/storage/any_object_store.hpp - AnyObjectStore: an object store whose type is known when the program runs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/storage/object_store.hpp>

namespace strata::storage {

/// Any ObjectStore. Copies share it.
class AnyObjectStore {
    struct Calls {
        virtual ~Calls() = default;
        virtual std::vector<ObjectInfo> list(std::string_view prefix) const = 0;
        virtual ObjectPage list_page(std::string_view prefix, std::string_view after, std::size_t limit) const = 0;
        virtual void list_each(std::string_view prefix, const std::function<bool(ObjectInfo&&)>& visit) const = 0;
        virtual std::optional<ObjectInfo> head(std::string_view key) const = 0;
        virtual bool exists(std::string_view key) const = 0;
        virtual std::vector<std::byte> get(std::string_view key) const = 0;
        virtual std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                 std::uint64_t length) const = 0;
        virtual void put(std::string_view key, std::span<const std::byte> bytes) const = 0;
        virtual void remove(std::string_view key) const = 0;
        virtual std::string where(std::string_view key) const = 0;
        virtual int requests_at_once() const = 0;
        virtual void interrupt() const noexcept = 0;
    };

    template <ObjectStore Store>
    struct Of final : Calls {
        explicit Of(Store held) : store{std::move(held)} {}
        std::vector<ObjectInfo> list(std::string_view prefix) const override { return store.list(prefix); }
        ObjectPage list_page(std::string_view prefix, std::string_view after, std::size_t limit) const override {
            return store.list_page(prefix, after, limit);
        }
        void list_each(std::string_view prefix, const std::function<bool(ObjectInfo&&)>& visit) const override {
            storage::list_each(store, prefix, visit);
        }
        std::optional<ObjectInfo> head(std::string_view key) const override { return store.head(key); }
        bool exists(std::string_view key) const override { return store.exists(key); }
        std::vector<std::byte> get(std::string_view key) const override { return store.get(key); }
        std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                         std::uint64_t length) const override {
            return store.get_range(key, offset, length);
        }
        void put(std::string_view key, std::span<const std::byte> bytes) const override { store.put(key, bytes); }
        void remove(std::string_view key) const override { store.remove(key); }
        std::string where(std::string_view key) const override { return store.where(key); }
        int requests_at_once() const override {
            if constexpr (requires { store.requests_at_once(); }) return store.requests_at_once();
            return 0;
        }
        void interrupt() const noexcept override {
            if constexpr (requires { store.interrupt(); }) store.interrupt();
        }
        Store store;
    };

public:
    template <ObjectStore Store>
    explicit AnyObjectStore(Store store) : calls_{std::make_shared<const Of<Store>>(std::move(store))} {}

    [[nodiscard]] std::vector<ObjectInfo> list(std::string_view prefix) const { return calls_->list(prefix); }
    [[nodiscard]] ObjectPage list_page(std::string_view prefix, std::string_view after, std::size_t limit) const {
        return calls_->list_page(prefix, after, limit);
    }
    void list_each(std::string_view prefix, const std::function<bool(ObjectInfo&&)>& visit) const {
        calls_->list_each(prefix, visit);
    }
    [[nodiscard]] std::optional<ObjectInfo> head(std::string_view key) const { return calls_->head(key); }
    [[nodiscard]] bool exists(std::string_view key) const { return calls_->exists(key); }
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const { return calls_->get(key); }
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const {
        return calls_->get_range(key, offset, length);
    }
    void put(std::string_view key, std::span<const std::byte> bytes) const { calls_->put(key, bytes); }
    void remove(std::string_view key) const { calls_->remove(key); }
    [[nodiscard]] std::string where(std::string_view key) const { return calls_->where(key); }

    /// Requests that the store makes at once; 0 where it does not say.
    [[nodiscard]] int requests_at_once() const { return calls_->requests_at_once(); }
    /// Ends what the store waits for, if it can.
    void interrupt() const noexcept { calls_->interrupt(); }

private:
    std::shared_ptr<const Calls> calls_;
};
static_assert(ObjectStore<AnyObjectStore>);

}  // namespace strata::storage
