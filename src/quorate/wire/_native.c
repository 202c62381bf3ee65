/* The codec of quorate.wire in C: the same declarations, read from the same schema.
 *
 * A program (see program.py) describes one version of a message. Slots of message objects are
 * read and written at their offsets. This file only knows the straight road: whatever is unusual
 * (bytes that break a rule, a value that does not fit, a tag that the schema lacks) is a fault, and
 * then the codec in Python does the call again and decides. So errors have one owner, and nothing
 * here runs Python code while a message is open.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>

#include "native_c/recycle.h"
#include "native_c/spec.h"
#include "native_c/encode.h"
#include "native_c/decode.h"
#include "native_c/bulk.h"

static PyObject *native_learn(PyObject *self, PyObject *arguments)
{
    PyObject *cls, *program;
    Py_ssize_t version;
    if (!PyArg_ParseTuple(arguments, "O!nO!", &PyType_Type, &cls, &version, &PyTuple_Type, &program))
        return NULL;
    struct spec *spec = new_spec(program);
    PyObject *capsule = spec == NULL ? NULL : PyCapsule_New(spec, NULL, NULL);
    if (capsule == NULL)
        return NULL;
    PyObject *versions = PyDict_GetItemWithError(codecs, cls);
    if (versions == NULL) {
        versions = PyList_New(0);
        if (versions == NULL || PyDict_SetItem(codecs, cls, versions) < 0)
            return NULL;
        Py_DECREF(versions);
    }
    while (PyList_GET_SIZE(versions) <= version)
        if (PyList_Append(versions, Py_None) < 0)
            return NULL;
    if (PyList_SetItem(versions, version, capsule) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* program -> what decode_items needs to know of a struct */
static PyObject *native_items_spec(PyObject *self, PyObject *program)
{
    struct spec *spec = new_spec(program);
    return spec == NULL ? NULL : PyCapsule_New(spec, NULL, NULL);
}

static PyObject *native_fall_back(PyObject *self, PyObject *arguments)
{
    PyObject *encode, *decode;
    if (!PyArg_ParseTuple(arguments, "OO", &encode, &decode))
        return NULL;
    Py_XSETREF(slow_encode, Py_NewRef(encode));
    Py_XSETREF(slow_decode, Py_NewRef(decode));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"encode", (PyCFunction)(void (*)(void))native_encode, METH_FASTCALL, NULL},
    {"decode", (PyCFunction)(void (*)(void))native_decode, METH_FASTCALL, NULL},
    {"decode_prefix", (PyCFunction)(void (*)(void))native_decode_prefix, METH_FASTCALL, NULL},
    {"items_spec", native_items_spec, METH_O, NULL},
    {"decode_items", native_decode_items, METH_VARARGS, NULL},
    {"json_texts", native_json_texts, METH_VARARGS, NULL},
    {"value_bounds", native_value_bounds, METH_VARARGS, NULL},
    {"learn", native_learn, METH_VARARGS, NULL},
    {"fall_back", native_fall_back, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "The codec of quorate.wire in C.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *made = PyModule_Create(&module);
    codecs = PyDict_New();
    no_tags = PyTuple_New(0);
    int known = keep_small_numbers();
    if (made == NULL || codecs == NULL || no_tags == NULL || known < 0 ||
        PyModule_AddIntConstant(made, "FORMAT", FORMAT) < 0)
        return NULL;
    return made;
}
