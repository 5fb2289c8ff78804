#pragma once
// strata/core/impl/symbol_names.ipp - the dynamic loader's answer, and behind it the file's own table.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/core/symbol_names.hpp>

namespace strata::core {

/// An ELF file in memory, and where its functions begin.
class SymbolNames::File {
public:
    struct Function {
        std::uint64_t begin = 0;
        std::uint64_t bytes = 0;
        const char* name = "";
    };

    explicit File(const std::string& path) {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return;
        struct ::stat status {};
        if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
            bytes_ = static_cast<std::size_t>(status.st_size);
            void* const mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
            if (mapped != MAP_FAILED) begin_ = static_cast<const char*>(mapped);
        }
        ::close(descriptor);
        if (begin_ != nullptr) read();
    }
    ~File() {
        if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), bytes_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    /// False: addresses in the file are those of the process.
    [[nodiscard]] bool is_moved() const noexcept { return is_moved_; }
    [[nodiscard]] const Function* function_at(std::uint64_t address) const noexcept {
        auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                     [](std::uint64_t at, const Function& one) { return at < one.begin; });
        if (next == functions_.begin()) return nullptr;
        --next;
        return address - next->begin < next->bytes ? &*next : nullptr;
    }

private:
    /// `count` of T at that place of the file, where all of them are inside.
    template <class T>
    [[nodiscard]] const T* at(std::uint64_t offset, std::uint64_t count = 1) const noexcept {
        if (offset > bytes_ || count > (bytes_ - offset) / sizeof(T) || offset % alignof(T) != 0) return nullptr;
        return reinterpret_cast<const T*>(begin_ + offset);
    }
    void read() {
        const auto* const head = at<ElfW(Ehdr)>(0);
        if (head == nullptr || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
        is_moved_ = head->e_type != ET_EXEC;
        const auto* const sections = at<ElfW(Shdr)>(head->e_shoff, head->e_shnum);
        if (sections == nullptr) return;
        for (std::size_t n = 0; n < head->e_shnum; ++n) {
            const ElfW(Shdr)& table = sections[n];
            if (table.sh_type != SHT_SYMTAB || table.sh_link >= head->e_shnum) continue;
            const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
            const auto* const symbols = at<ElfW(Sym)>(table.sh_offset, count);
            const ElfW(Shdr)& text = sections[table.sh_link];
            const char* const names = at<char>(text.sh_offset, text.sh_size);
            if (symbols == nullptr || names == nullptr || text.sh_size == 0 || names[text.sh_size - 1] != '\0') return;
            for (std::uint64_t i = 0; i < count; ++i)
                if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_size > 0 &&
                    symbols[i].st_name < text.sh_size)
                    functions_.push_back({symbols[i].st_value, symbols[i].st_size, names + symbols[i].st_name});
        }
        std::sort(functions_.begin(), functions_.end(),
                  [](const Function& a, const Function& b) { return a.begin < b.begin; });
    }

    const char* begin_ = nullptr;
    std::size_t bytes_ = 0;
    bool is_moved_ = true;
    std::vector<Function> functions_;
};

namespace detail {

inline std::string readable(const char* name) {
    int failed = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain{abi::__cxa_demangle(name, nullptr, nullptr, &failed),
                                                            &std::free};
    std::string text = failed == 0 && plain ? plain.get() : name;
    constexpr std::size_t most = 400;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

inline std::string in_hexadecimal(std::uint64_t number) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "+0x%llx", static_cast<unsigned long long>(number));
    return text.data();
}

}  // namespace detail

STRATA_INLINE SymbolNames::SymbolNames() = default;
STRATA_INLINE SymbolNames::~SymbolNames() = default;

STRATA_INLINE std::string SymbolNames::name_of(const void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    Dl_info known{};
    if (::dladdr(address, &known) == 0 || known.dli_fname == nullptr) return "?" + detail::in_hexadecimal(number);
    const std::string_view path{known.dli_fname};
    const std::string file{path.substr(path.find_last_of('/') + 1)};
    if (known.dli_sname != nullptr && known.dli_saddr != nullptr)
        return detail::readable(known.dli_sname) +
               detail::in_hexadecimal(number - reinterpret_cast<std::uintptr_t>(known.dli_saddr)) + " in " + file;
    // The program's own name may be relative to a folder that it has left.
    const void* const program_at = [] {
        Dl_info own{};
        return ::dladdr(reinterpret_cast<const void*>(::getauxval(AT_ENTRY)), &own) == 0 ? nullptr : own.dli_fbase;
    }();
    const std::string opened = known.dli_fbase == program_at ? "/proc/self/exe" : std::string{path};
    std::unique_ptr<File>& read = files_[opened];
    if (!read) read = std::make_unique<File>(opened);
    const File& symbols = *read;
    const std::uint64_t inside =
        symbols.is_moved() ? number - reinterpret_cast<std::uintptr_t>(known.dli_fbase) : number;
    if (const File::Function* const function = symbols.function_at(inside))
        return detail::readable(function->name) + detail::in_hexadecimal(inside - function->begin) + " in " + file;
    return file + detail::in_hexadecimal(inside);
}

}  // namespace strata::core
