// Runs a graph with the reference interpreter and as machine code on the same random memory, and compares every output.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "framejit/api.h"
#include "framejit/op.h"

namespace framejit::test {

// Bytes that end where unmapped memory begins: a kernel that reaches too far dies.
class Guarded {
public:
    Guarded() = default;
    Guarded(size_t bytes, char fill);
    Guarded(const Guarded&);
    Guarded(Guarded&& o) noexcept { swap(o); }
    Guarded& operator=(Guarded o) noexcept {
        swap(o);
        return *this;
    }
    ~Guarded();
    char* data() const { return data_; }
    size_t size() const { return size_; }
    bool operator==(const Guarded&) const;

private:
    void swap(Guarded& o) noexcept {
        std::swap(mapped_, o.mapped_);
        std::swap(length_, o.length_);
        std::swap(data_, o.data_);
        std::swap(size_, o.size_);
    }
    void* mapped_ = nullptr;
    size_t length_ = 0, size_ = 0;
    char* data_ = nullptr;
};
// Memory of inputs and outputs of a graph; strided inputs have room for what they reach.
struct Memory {
    std::vector<Guarded> buffers;
    std::vector<void*> pointers;
};
Memory random_memory(const Graph&, uint64_t seed, double lo = -3, double hi = 3);
// What two runs may differ by: nothing, unless the graph reduces floats (the order of a sum is not fixed) .
// Returns the first difference, or an empty string.
std::string compare(const Graph&, const Memory& got, const Memory& want);
// Both runs; the difference, or an empty string. Kernels that must agree for any number of threads are run in pieces, too.
std::string difference(const Graph&, const Target&, uint64_t seed = 1, double lo = -3, double hi = 3);

std::vector<Target> targets();  // what this machine can run: itself, and AVX2 where it offers more
int32_t run_in_pieces(int64_t begin, int64_t end, int64_t grain, void (*work)(int64_t, int64_t, void*), void* context);  // a ParallelFor

}  // namespace framejit::test
