// tests/support/fake_nvml.cpp - a library with the symbols of NVML that are called, and answers from a script.
//
// The file that STRATA_FAKE_NVML names has lines "key value", and is read at every call, so that a test plays a fault by writing it
// anew. "gpu0.temperature 65" is an answer, "gpu0.temperature !15" the error 15; a key that is not there is error 3, not supported.
// Signatures and layouts are written down here on their own, and not taken from the code that is tested.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

struct Answer {
    int returned = 3;
    std::string text;
    [[nodiscard]] long long number() const { return std::atoll(text.c_str()); }
};

Answer answer_to(const std::string& key) {
    const char* script = std::getenv("STRATA_FAKE_NVML");
    std::ifstream in{script != nullptr ? script : ""};
    for (std::string line; std::getline(in, line);) {
        const std::size_t blank = line.find(' ');
        if (line.substr(0, blank) != key) continue;
        const std::string value = line.substr(blank + 1);
        if (value.starts_with('!')) return {std::atoi(value.c_str() + 1), ""};
        return {0, value};
    }
    return {};
}

struct Gpu {
    std::string key;
};
Gpu gpus[4] = {{"gpu0."}, {"gpu1."}, {"gpu2."}, {"gpu3."}};

Answer of(void* device, const std::string& what) { return answer_to(static_cast<Gpu*>(device)->key + what); }

template <class Number>
int give(const Answer& answer, Number* out) {
    if (answer.returned == 0) *out = static_cast<Number>(answer.number());
    return answer.returned;
}

int copy(const Answer& answer, char* out, unsigned size) {
    if (answer.returned != 0) return answer.returned;
    if (answer.text.size() + 1 > size) return 7;
    std::memcpy(out, answer.text.c_str(), answer.text.size() + 1);
    return 0;
}

struct FieldValue {
    unsigned int id, scope;
    long long timestamp, latency;
    unsigned int type;
    int returned;
    union {
        double d;
        int i;
        unsigned long long u;
    } value;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
    const Answer answer = answer_to("init");
    return answer.returned == 3 ? 0 : answer.returned;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int error) { return error == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned int* count) { return give(answer_to("count"), count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
    const Answer answer = answer_to("gpu" + std::to_string(index) + ".handle");
    if (answer.returned != 3) return answer.returned;
    *device = &gpus[index];
    return 0;
}
int nvmlDeviceGetName(void* device, char* out, unsigned int size) { return copy(of(device, "name"), out, size); }
int nvmlDeviceGetUUID(void* device, char* out, unsigned int size) { return copy(of(device, "uuid"), out, size); }
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* out) {
    return sensor == 0 ? give(of(device, "temperature"), out) : 2;
}
int nvmlDeviceGetTemperatureThreshold(void* device, int kind, unsigned int* out) {
    return give(of(device, kind == 0 ? "shutdown_at" : kind == 1 ? "slowdown_at" : "other_at"), out);
}
int nvmlDeviceGetMarginTemperature(void* device, void* out) {
    unsigned int version = 0;
    std::memcpy(&version, out, 4);
    if (version != 0x01000008U) return 25;  // argument version mismatch
    const Answer answer = of(device, "margin");
    const int degrees = static_cast<int>(answer.number());
    if (answer.returned == 0) std::memcpy(static_cast<char*>(out) + 4, &degrees, 4);
    return answer.returned;
}
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
    for (int i = 0; i < count; ++i) {
        const Answer answer = of(device, "field" + std::to_string(values[i].id));
        values[i].returned = answer.returned;
        values[i].type = 5;
        values[i].value.i = static_cast<int>(answer.number());
    }
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* out) {
    return give(
        of(device, std::string{counter == 0 ? "volatile" : "aggregate"} + (type == 0 ? "_corrected" : "_uncorrected")),
        out);
}
int nvmlDeviceGetRemappedRows(void* device, unsigned int* corrected, unsigned int* uncorrected, unsigned int* pending,
                              unsigned int* failed) {
    if (const Answer rows = of(device, "remapped"); rows.returned != 0) return rows.returned;
    *corrected = 0;
    give(of(device, "remapped"), uncorrected);
    give(of(device, "remap_pending"), pending);
    give(of(device, "remap_failed"), failed);
    return 0;
}
int nvmlDeviceGetRetiredPages(void* device, int cause, unsigned int* count, unsigned long long* addresses) {
    const unsigned int room = *count;
    const int returned = give(of(device, cause == 0 ? "retired_single" : "retired_double"), count);
    if (returned != 0) return returned;
    return *count > room || (addresses == nullptr && *count > 0) ? 7 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
    return give(of(device, "throttle"), out);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* out) { return give(of(device, "power"), out); }
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* out) { return give(of(device, "power_limit"), out); }
int nvmlDeviceGetFanSpeed(void* device, unsigned int* out) { return give(of(device, "fan"), out); }
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
    const Answer total = of(device, "memory_total");
    if (total.returned != 0) return total.returned;
    give(total, &total_free_used[0]);
    give(of(device, "memory_used"), &total_free_used[2]);
    total_free_used[1] = total_free_used[0] - total_free_used[2];
    return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int* gpu_memory) {
    gpu_memory[1] = 0;
    return give(of(device, "busy"), &gpu_memory[0]);
}
}
