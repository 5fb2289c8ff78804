// tests/consume/consumer.cpp - somebody else's program: a composition, and five bytes through the store it names.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <strata/policy/setup.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/storage/local.hpp>

using Mine = strata::Setup<strata::ZeroStage<2>, strata::Backend<strata::Local>>;

#ifdef CONSUMER_WANTS_COMPILED
#ifndef STRATA_COMPILED
#error "linking strata::compiled must define STRATA_COMPILED"
#endif
#endif

int main() {
    const Mine::backend::store store{std::filesystem::current_path() / "consumer-store"};
    const std::vector<std::byte> five(5, std::byte{7});
    store.put("some/bytes.gz", strata::storage::gzip_compress(five));
    const auto back = strata::storage::gzip_decompress(store.get("some/bytes.gz"));
    std::printf("stage %d, read back %zu bytes\n", Mine::sharding::stage, back.size());
    return back == five ? 0 : 1;
}
