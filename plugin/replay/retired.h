// Reports of compiled functions that no longer exist: framejit.report() tells the whole process's story, also of functions that were local.
// One row per (name, file, line), so a process that makes and drops compiled functions all day keeps as many rows as it has functions in
// its source.
#pragma once
#include "plugin/py.h"

namespace framejit {

class FunctionProgram;
void retire(const FunctionProgram&);   // it is about to lose what it knows. Needs the GIL; leaves a set Python error alone
int add_retired_rows(PyObject* list);  // -1 with a Python error
void forget_retired();
int add_retired(PyObject* module);  // no rows are made any more once the interpreter shuts down

}  // namespace framejit
