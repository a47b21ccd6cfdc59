// Which values should get memory although no kernel depends on it: large kernels are cut, and work that several kernels would repeat is
// shared.
#pragma once
#include "src/schedule/plan.h"

namespace framejit {

// Values below a narrow place of a kernel that is too large; cutting there leaves a kernel of a fraction of the size.
std::vector<Ref> values_to_cut(const Lowered&, const Times&, const Cuts&, Ref root);
// Values that two or more kernels compute and that cost more than writing and reading them.
std::vector<Ref> values_to_share(const Graph&, const Times&, const std::vector<Group>&, const Cuts&, const ScheduleOptions&);

}  // namespace framejit
