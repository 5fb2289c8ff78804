#pragma once
// tests/support/counting_store.hpp - a folder whose calls are counted, and fail where a test wants it.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <strata/storage/local.hpp>

namespace strata_test {

/// Copies share their counters.
class CountingStore : public strata::Local {
public:
    struct Calls {
        std::mutex mutex;
        int lists = 0;
        std::map<std::string, int> reads;  ///< get and get_range, by key
        /// Called before each read, may throw; with the number of reads that went before.
        std::function<void(std::string_view key, int before)> on_read;
        /// Changes what get() gives.
        std::function<void(std::string_view key, std::vector<std::byte>& bytes)> on_get;
    };

    using strata::Local::Local;

    [[nodiscard]] Calls& calls() const noexcept { return *calls_; }
    [[nodiscard]] int reads() const {
        const std::lock_guard lock{calls_->mutex};
        int sum = 0;
        for (const auto& [key, count] : calls_->reads) sum += count;
        return sum;
    }
    [[nodiscard]] int reads(const std::string& key) const {
        const std::lock_guard lock{calls_->mutex};
        const auto found = calls_->reads.find(key);
        return found == calls_->reads.end() ? 0 : found->second;
    }
    void forget() const {
        const std::lock_guard lock{calls_->mutex};
        calls_->lists = 0;
        calls_->reads.clear();
    }

    [[nodiscard]] std::vector<strata::storage::ObjectInfo> list(std::string_view prefix) const {
        count_list();
        return Local::list(prefix);
    }
    [[nodiscard]] strata::storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                        std::size_t limit) const {
        count_list();
        return Local::list_page(prefix, after, limit);
    }
    void list_each(std::string_view prefix, const std::function<bool(strata::storage::ObjectInfo&&)>& visit) const {
        count_list();
        Local::list_each(prefix, visit);
    }
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const {
        count_read(key);
        std::vector<std::byte> bytes = Local::get(key);
        if (calls_->on_get) calls_->on_get(key, bytes);
        return bytes;
    }
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const {
        count_read(key);
        return Local::get_range(key, offset, length);
    }

private:
    void count_list() const {
        const std::lock_guard lock{calls_->mutex};
        ++calls_->lists;
    }
    void count_read(std::string_view key) const {
        const int before = reads();
        if (calls_->on_read) calls_->on_read(key, before);
        const std::lock_guard lock{calls_->mutex};
        ++calls_->reads[std::string{key}];
    }
    std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};
static_assert(strata::storage::ObjectStore<CountingStore>);

}  // namespace strata_test
