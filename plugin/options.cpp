// Options as Python sees them: flags are bool, integers int, everything else str. Every refusal names what would be accepted.
#include "plugin/options.h"

namespace framejit {

static PyObject* unicode(std::string_view text) { return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size())); }

// Null with a Python error that names the valid options: all of them, or only those of one scope.
static const OptionRow* find_row(PyObject* name, const OptionScope* scope = nullptr) {
    const char* word = PyUnicode_AsUTF8(name);
    if (!word) return nullptr;
    if (const OptionRow* row = find_option(word)) return row;
    std::string valid;
    for (const OptionRow& row : option_rows())
        if (!scope || row.scope == *scope) valid.append(valid.empty() ? "" : ", ").append(row.name);
    PyErr_Format(PyExc_ValueError, "unknown option '%s'; valid options: %s", word, valid.c_str());
    return nullptr;
}

static Option option_of(const OptionRow* row) { return Option(row - option_rows().data()); }

static PyObject* value_of(const OptionRow& row, const std::string& text) {
    switch (row.type) {
    case OptionType::flag: return PyBool_FromLong(text == "1");
    case OptionType::integer: return PyLong_FromString(text.c_str(), nullptr, 10);
    default: return unicode(text);
    }
}

// What the user gave, as the text that the table parses; false with TypeError when the type cannot be meant.
static bool text_of(const OptionRow& row, PyObject* value, std::string& text) {
    bool is_integer = PyLong_Check(value) && !PyBool_Check(value);
    bool is_flag = PyBool_Check(value);
    bool fits = row.type == OptionType::flag      ? is_flag || is_integer
                : row.type == OptionType::integer ? is_integer
                                                  : PyUnicode_Check(value);
    if (!fits) {
        const char* wanted = row.type == OptionType::flag ? "bool" : row.type == OptionType::integer ? "int" : "str";
        PyErr_Format(PyExc_TypeError, "option '%s' takes %s, not %.100s", row.name.data(), wanted, Py_TYPE(value)->tp_name);
        return false;
    }
    PyRef printed = PyRef::steal(is_flag ? PyUnicode_FromString(value == Py_True ? "1" : "0") : PyObject_Str(value));
    const char* utf8 = printed ? PyUnicode_AsUTF8(printed.get()) : nullptr;
    if (utf8) text = utf8;
    return utf8 != nullptr;
}

static PyObject* options(PyObject*, PyObject*) {
    PyRef list = PyRef::steal(PyList_New(0));
    if (!list) return nullptr;
    for (const OptionRow& row : option_rows()) {
        PyRef choices = PyRef::steal(PyTuple_New(Py_ssize_t(row.choices.size())));
        if (!choices) return nullptr;
        for (size_t i = 0; i < row.choices.size(); ++i) PyTuple_SET_ITEM(choices.get(), Py_ssize_t(i), unicode(row.choices[i]));
        PyRef initial = PyRef::steal(value_of(row, std::string(row.initial)));
        if (!initial) return nullptr;
        PyRef one = PyRef::steal(Py_BuildValue("{s:s#,s:s#,s:s,s:O,s:O,s:s,s:s#}", "name", row.name.data(), Py_ssize_t(row.name.size()),
                                               "variable", row.variable.data(), Py_ssize_t(row.variable.size()), "type", name_of(row.type),
                                               "default", initial.get(), "choices", choices.get(), "scope", name_of(row.scope), "help",
                                               row.help.data(), Py_ssize_t(row.help.size())));
        if (!one || PyList_Append(list.get(), one.get()) < 0) return nullptr;
    }
    return list.release();
}

static PyObject* get_option(PyObject*, PyObject* name) {
    const OptionRow* row = find_row(name);
    return row ? value_of(*row, option_text(option_of(row))) : nullptr;
}

static PyObject* set_option_by_name(PyObject*, PyObject* args) {
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "UO:set_option", &name, &value)) return nullptr;
    const OptionRow* row = find_row(name);
    std::string text;
    if (!row || !text_of(*row, value, text)) return nullptr;
    std::string error = set_option(option_of(row), text);
    if (!error.empty()) return PyErr_Format(PyExc_ValueError, "option %s", error.c_str());
    Py_RETURN_NONE;
}

// A value that could be set, for an option that one function may have for itself.
static bool check_function_option(PyObject* name, PyObject* value) {
    OptionScope scope = OptionScope::function;
    const OptionRow* row = find_row(name, &scope);
    std::string text, error;
    int64_t unused = 0;
    if (!row) return false;
    if (row->scope != OptionScope::function)
        PyErr_Format(PyExc_ValueError, "option '%s' holds for the whole process; set it with framejit.config", row->name.data());
    else if (text_of(*row, value, text) && !parse_option(*row, text, unused, error))
        PyErr_Format(PyExc_ValueError, "option %s", error.c_str());
    return !PyErr_Occurred();
}

static PyObject* check_function_options(PyObject*, PyObject* dict) {
    if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "options must be a dict, not %.100s", Py_TYPE(dict)->tp_name);
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &value))
        if (!check_function_option(name, value)) return nullptr;
    Py_RETURN_NONE;
}

int add_options(PyObject* module) {
    static PyMethodDef methods[] = {
        {"options", options, METH_NOARGS, "Every option as a dict: name, variable, type, default, choices, scope, help."},
        {"get_option", get_option, METH_O, "The current value of an option."},
        {"set_option", set_option_by_name, METH_VARARGS, "Sets an option for the whole process."},
        {"check_function_options", check_function_options, METH_O, "Raises unless a dict holds only good options of function scope."},
        {nullptr, nullptr, 0, nullptr},
    };
    std::string errors;
    for (const std::string& error : environment_errors()) errors.append(errors.empty() ? "" : "\n").append(error);
    if (!errors.empty()) {
        PyErr_SetString(PyExc_ValueError, errors.c_str());
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}

}  // namespace framejit
