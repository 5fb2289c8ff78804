#pragma once
// strata/core/symbol_names.hpp - SymbolNames: which function of this process an address is in.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <strata/core/inline.hpp>

namespace strata::core {

/// Reads the symbol tables of program and libraries when one of their addresses is first asked for, static functions included unless the
/// file was stripped of them. Needs no debugger and no option of the linker.
class SymbolNames {
public:
    SymbolNames();
    ~SymbolNames();
    SymbolNames(const SymbolNames&) = delete;
    SymbolNames& operator=(const SymbolNames&) = delete;

    /// "void work<3>()+0x1f in libwork.so"; "libwork.so+0x1234", as addr2line takes it, where no symbol holds the address. Long names are cut
    /// to 400 bytes. Local.
    [[nodiscard]] std::string name_of(const void* address);

private:
    class File;
    std::map<std::string, std::unique_ptr<File>> files_;
};

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/symbol_names.ipp>
#endif
