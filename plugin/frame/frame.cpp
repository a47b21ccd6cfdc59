// What follows from the version files' accessors without knowing any layout.
#include "plugin/frame/frame.h"

namespace framejit {

int line_at(PyCodeObject* code, int unit) { return PyCode_Addr2Line(code, unit * (int)sizeof(_Py_CODEUNIT)); }

int line_of(const Frame* frame) { return line_at(code_of(frame), unit_of(frame)); }

std::string where(const Frame* frame) {
    PyCodeObject* code = code_of(frame);
    auto text = [](PyObject* string) {
        const char* utf8 = PyUnicode_AsUTF8(string);
        if (!utf8) PyErr_Clear();  // a lone surrogate in a file name
        return std::string(utf8 ? utf8 : "?");
    };
    return text(code->co_filename) + ":" + std::to_string(line_of(frame)) + " in " + text(code->co_qualname);
}

}  // namespace framejit
