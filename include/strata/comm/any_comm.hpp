#pragma once
// strata/comm/any_comm.hpp - AnyComm: a communicator of any type behind one type.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <strata/comm/channel.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/stall.hpp>
#include <strata/core/bf16.hpp>

namespace strata::comm {

/// What is compiled once for all communicators exchanges bytes with it: a call of a virtual function beside a message.
/// Spans are host memory, whatever the communicator takes: of one for a GPU's memory it is the host's (host_of()).
///
/// It has the calls of a Communicator, with their promises, and forwards what only some communicators have. A collective
/// begins when all that was posted to a channel of that communicator is done: a forward pass of an engine may have gathered
/// ahead.
class AnyComm {
public:
    ///   comm  outlives this
    template <Communicator Comm>
    requires(!std::same_as<Comm, AnyComm>) explicit AnyComm(Comm& comm)
        : ranks_{std::make_unique<Of<Comm>>(comm)}, rank_{comm.rank()}, world_{comm.world()} {}
    AnyComm(AnyComm&&) = delete;  // others have its address

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int world() const noexcept { return world_; }
    void barrier() { ranks_->barrier(); }
    void broadcast(std::span<std::byte> bytes, int root) { ranks_->broadcast(bytes, root); }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) { ranks_->all_gather(mine, all); }
    [[nodiscard]] std::vector<std::string> all_gather_varied(std::string_view mine) {
        return ranks_->all_gather_varied(mine);
    }
    void reduce_scatter(std::span<const float> all, std::span<float> mine) { ranks_->reduce_scatter(all, mine); }
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) { ranks_->reduce_scatter(all, mine); }
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine) { ranks_->reduce_scatter(all, mine); }
    void all_reduce_sum(std::span<double> values) { ranks_->all_reduce_sum(values); }
    [[noreturn]] void abort(int status) noexcept {
        ranks_->abort(status);
        std::terminate();  // not reached: abort() does not return
    }

    /// The communicator itself, where it is a Comm; else nullptr. Local.
    template <Communicator Comm>
    [[nodiscard]] Comm* as() noexcept {
        return static_cast<Comm*>(ranks_->itself(typeid(Comm)));
    }

    /// A name for the collectives that follow, in messages about them. Nothing where there is no such thing. Local.
    void label(std::string_view text) { ranks_->label(text); }
    /// The collective that runs and all later ones throw rank_failed, where the communicator can do so. Local, from any
    /// thread.
    void interrupt() noexcept { ranks_->interrupt(); }
    /// How long a rank waits for the others in one collective, where a watchdog looks at that. Local, from any thread.
    void set_collective_timeout(std::chrono::milliseconds timeout) noexcept { ranks_->set_collective_timeout(timeout); }
    /// What is done before such a watchdog ends the job; nothing where there is none. Local, from any thread.
    void on_stall(StallHook hook) { ranks_->on_stall(std::move(hook)); }
    /// How bytes travel, in words; empty where the communicator does not say. Local.
    [[nodiscard]] std::string transport() const { return ranks_->transport(); }

private:
    struct Ranks {
        virtual ~Ranks() = default;
        virtual void barrier() = 0;
        virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
        virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
        virtual std::vector<std::string> all_gather_varied(std::string_view mine) = 0;
        virtual void reduce_scatter(std::span<const float> all, std::span<float> mine) = 0;
        virtual void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) = 0;
        virtual void reduce_scatter(std::span<const bf16> all, std::span<float> mine) = 0;
        virtual void all_reduce_sum(std::span<double> values) = 0;
        virtual void abort(int status) noexcept = 0;
        virtual void* itself(const std::type_info& type) noexcept = 0;
        virtual void label(std::string_view text) = 0;
        virtual void interrupt() noexcept = 0;
        virtual void set_collective_timeout(std::chrono::milliseconds timeout) noexcept = 0;
        virtual void on_stall(StallHook hook) = 0;
        virtual std::string transport() const = 0;
    };

    template <class Comm>
    struct Of final : Ranks {
        explicit Of(Comm& given) : comm{given} {}
        void barrier() override { settled().barrier(); }
        void broadcast(std::span<std::byte> bytes, int root) override { host_of(settled()).broadcast(bytes, root); }
        void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
            host_of(settled()).all_gather(mine, all);
        }
        std::vector<std::string> all_gather_varied(std::string_view mine) override {
            return settled().all_gather_varied(mine);
        }
        void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
            host_of(settled()).reduce_scatter(all, mine);
        }
        void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) override {
            host_of(settled()).reduce_scatter(all, mine);
        }
        void reduce_scatter(std::span<const bf16> all, std::span<float> mine) override {
            host_of(settled()).reduce_scatter(all, mine);
        }
        void all_reduce_sum(std::span<double> values) override { settled().all_reduce_sum(values); }
        void abort(int status) noexcept override { comm.abort(status); }
        void* itself(const std::type_info& type) noexcept override { return type == typeid(Comm) ? &comm : nullptr; }
        void label(std::string_view text) override {
            if constexpr (requires { comm.label(text); }) comm.label(text);
        }
        void interrupt() noexcept override {
            if constexpr (requires { comm.interrupt(); }) comm.interrupt();
        }
        void set_collective_timeout(std::chrono::milliseconds timeout) noexcept override {
            if constexpr (requires { comm.set_collective_timeout(timeout); }) comm.set_collective_timeout(timeout);
        }
        void on_stall(StallHook hook) override {
            if constexpr (requires { comm.on_stall(std::move(hook)); }) comm.on_stall(std::move(hook));
        }
        std::string transport() const override {
            if constexpr (requires {
                              { comm.transport() } -> std::convertible_to<std::string>;
                          })
                return comm.transport();
            return {};
        }
        /// Once no channel is inside of it.
        Comm& settled() {
            settle(comm);
            return comm;
        }
        Comm& comm;
    };

    std::unique_ptr<Ranks> ranks_;
    int rank_;
    int world_;
};

static_assert(Communicator<AnyComm> && std::constructible_from<AnyComm, archetype::Communicator&>);

}  // namespace strata::comm
