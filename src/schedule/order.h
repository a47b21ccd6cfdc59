// The order of execution: calls in node order, kernels between them.
#pragma once
#include "src/schedule/plan.h"

namespace framejit {

struct KernelItem {  // the kernel of a group; null when nobody needs what it makes
    const Kernel* kernel = nullptr;
    std::vector<int> buffers;
};
std::vector<Step> order_steps(const Plan&, const Times&, const std::vector<KernelItem>& kernels, const std::vector<Call>& calls);

}  // namespace framejit
