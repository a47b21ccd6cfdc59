// The fastest way to run some operators: a function of torch's C ABI on borrowed handles. Private to plugin/torch.
#pragma once
#include "plugin/torch/operators.h"
#include "plugin/torch/tensor.h"
#include <array>

namespace framejit {

enum class ShimFamily : uint8_t {
    MatMul,     // out(a, b)
    AddMatMul,  // out(self, a, b, beta, alpha)
};
struct ShimRow;

// One operator call prepared for its shim. `run` declines (null, no Python error) whenever eager might do something else.
class Shim {
public:
    // args: the schema's arguments in order, missing ones null; tensors are placeholders.
    static std::unique_ptr<Shim> prepare(const OpSchema&, const std::vector<PyObject*>& args);
    PyObject* run(PyObject* const* tensors);

private:
    explicit Shim(const ShimRow& row) : row_(row) {}
    const ShimRow& row_;
    std::array<int, 3> tensors_{};  // [self,] a, b: indices into the tensors of the call
    double beta_ = 1, alpha_ = 1;
    std::array<int64_t, 3> shape_{};  // of the output that allocate_ makes
    int ndim_ = -1, dtype_ = -1;
    Allocator allocate_;
};

}  // namespace framejit
