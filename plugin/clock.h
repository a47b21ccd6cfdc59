// The clock of everything that the report says took a time.
#pragma once
#include <chrono>

namespace framejit {

inline double now_ms() {  // since some fixed moment
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace framejit
