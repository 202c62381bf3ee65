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

enum kind { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT, ARRAY };
enum place { BODY, TAGGED, DROPPED, REFUSED };

#define FORMAT 1 /* of the programs; native.py must say the same */
#define MAX_STRING 32767
#define MAX_TAGGED 32

struct spec;

struct field {
    Py_ssize_t offset;
    int kind;
    int element;
    int place;
    uint32_t tag;
    int nullable;
    int classic;
    int64_t least;       /* bytes of the smallest element of an array */
    PyObject *value;     /* the default; NULL: a new list or struct each time */
    struct spec *inner;
};

struct spec {
    PyTypeObject *type;
    Py_ssize_t unknown_tags;
    int flexible;
    int tagged;          /* how many fields are tagged; they stand in front, ascending by tag */
    Py_ssize_t count;
    struct field *fields;
};

static PyObject *codecs;      /* class -> list of capsules (struct spec) by version */
static PyObject *slow_encode; /* (message, version) -> bytes */
static PyObject *slow_decode; /* (class, version, bytes[, pos]) -> message[, pos] */
static PyObject *no_tags;     /* () */

/* -- programs ------------------------------------------------------------------------------ */

static int slot_offset(PyTypeObject *type, PyObject *name, Py_ssize_t *offset)
{
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL)
        return -1;
    int good = Py_IS_TYPE(found, &PyMemberDescr_Type) &&
               ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX;
    if (good)
        *offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%R is not a slot", name);
    Py_DECREF(found);
    return good ? 0 : -1;
}

static struct spec *new_spec(PyObject *program);

static int read_field(struct field *field, PyTypeObject *type, PyObject *entry)
{
    PyObject *name, *value, *inner;
    int has_default;
    if (!PyArg_ParseTuple(entry, "UiiiIppLpOO", &name, &field->kind, &field->element,
                          &field->place, &field->tag, &field->nullable, &field->classic,
                          &field->least, &has_default, &value, &inner))
        return -1;
    if (slot_offset(type, name, &field->offset) < 0)
        return -1;
    field->value = has_default ? Py_NewRef(value) : NULL;
    field->inner = NULL;
    if (inner != Py_None && (field->inner = new_spec(inner)) == NULL)
        return -1;
    int structs = field->kind == STRUCT || (field->kind == ARRAY && field->element == STRUCT);
    if (structs != (field->inner != NULL) || field->least < 1 ||
        field->kind < BOOL || field->kind > ARRAY || field->element < BOOL || field->element > STRUCT) {
        PyErr_SetString(PyExc_ValueError, "not a program");
        return -1;
    }
    return 0;
}

/* Specs live as long as the process, like the classes they describe. */
static struct spec *new_spec(PyObject *program)
{
    PyTypeObject *type;
    PyObject *entries;
    int flexible;
    if (!PyArg_ParseTuple(program, "O!pO!", &PyType_Type, &type, &flexible, &PyTuple_Type, &entries))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(entries);
    struct spec *spec = PyMem_Calloc(1, sizeof *spec);
    struct field *fields = PyMem_Calloc(count ? count : 1, sizeof *fields);
    PyObject *name = PyUnicode_FromString("unknown_tags");
    if (spec == NULL || fields == NULL || name == NULL)
        return (struct spec *)PyErr_NoMemory();
    if (slot_offset(type, name, &spec->unknown_tags) < 0)
        return NULL;
    Py_DECREF(name);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_field(&fields[i], type, PyTuple_GET_ITEM(entries, i)) < 0)
            return NULL;
        spec->tagged += fields[i].place == TAGGED;
    }
    if (spec->tagged > MAX_TAGGED) {
        PyErr_SetString(PyExc_ValueError, "too many tagged fields");
        return NULL;
    }
    spec->type = (PyTypeObject *)Py_NewRef(type);
    spec->flexible = flexible;
    spec->count = count;
    spec->fields = fields;
    return spec;
}

static struct spec *find_spec(PyObject *cls, PyObject *version)
{
    PyObject *versions = PyDict_GetItemWithError(codecs, cls);
    if (versions == NULL || !PyLong_CheckExact(version))
        return NULL;
    Py_ssize_t index = PyLong_AsSsize_t(version);
    if (index < 0 || index >= PyList_GET_SIZE(versions))
        return NULL;
    PyObject *capsule = PyList_GET_ITEM(versions, index);
    return capsule == Py_None ? NULL : PyCapsule_GetPointer(capsule, NULL);
}

/* -- objects ------------------------------------------------------------------------------- */

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static PyObject *default_of(const struct field *field);

static PyObject *new_object(const struct spec *spec)
{
    PyObject *made = spec->type->tp_alloc(spec->type, 0);
    if (made != NULL)
        SLOT(made, spec->unknown_tags) = Py_NewRef(no_tags);
    return made;
}

static PyObject *default_struct(const struct spec *spec)
{
    PyObject *made = new_object(spec);
    if (made == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < spec->count; i++) {
        PyObject *value = default_of(&spec->fields[i]);
        if (value == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        SLOT(made, spec->fields[i].offset) = value;
    }
    return made;
}

static PyObject *default_of(const struct field *field)
{
    if (field->value != NULL)
        return Py_NewRef(field->value);
    return field->kind == ARRAY ? PyList_New(0) : default_struct(field->inner);
}

static int plain(PyObject *value)
{
    return value == Py_None || PyLong_CheckExact(value) || PyUnicode_CheckExact(value) ||
           PyBytes_CheckExact(value) || PyBool_Check(value) || PyFloat_CheckExact(value);
}

/* 1: not the default; 0: the default; -1: a fault. */
static int differs(const struct field *field, PyObject *value)
{
    if (value == NULL)
        return -1;
    if (field->value != NULL) {
        if (value == field->value)
            return 0;
        if (!plain(value) || !plain(field->value))
            return field->value == Py_None ? 1 : -1;
        return PyObject_RichCompareBool(value, field->value, Py_NE);
    }
    if (field->kind == ARRAY)
        return !PyList_CheckExact(value) || PyList_GET_SIZE(value) != 0;
    const struct spec *inner = field->inner;
    if (!Py_IS_TYPE(value, inner->type))
        return 1;
    if (SLOT(value, inner->unknown_tags) != no_tags)
        return 1;
    for (Py_ssize_t i = 0; i < inner->count; i++) {
        int found = differs(&inner->fields[i], SLOT(value, inner->fields[i].offset));
        if (found)
            return found;
    }
    return 0;
}

/* -- encoding ------------------------------------------------------------------------------ */

struct out {
    uint8_t *data;
    size_t size;
    size_t room;
    uint8_t *heap;       /* NULL while `data` is the caller's */
};

static int grow(struct out *out, size_t more)
{
    size_t room = (out->size + more) * 2;
    uint8_t *heap = PyMem_Realloc(out->heap, room);
    if (heap == NULL)
        return -1;
    if (out->heap == NULL)
        memcpy(heap, out->data, out->size);
    out->data = out->heap = heap;
    out->room = room;
    return 0;
}

static inline int need(struct out *out, size_t more)
{
    return out->room - out->size >= more ? 0 : grow(out, more);
}

static inline int put(struct out *out, const void *bytes, size_t size)
{
    if (need(out, size) < 0)
        return -1;
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
    return 0;
}

static inline int put_int(struct out *out, uint64_t value, int size)
{
    if (need(out, 8) < 0)
        return -1;
    uint8_t *at = out->data + out->size;
    value <<= 64 - 8 * size;
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (56 - 8 * i));
    out->size += size;
    return 0;
}

static inline int put_varint(struct out *out, uint32_t value)
{
    if (need(out, 5) < 0)
        return -1;
    while (value > 127) {
        out->data[out->size++] = (uint8_t)(value & 127) | 128;
        value >>= 7;
    }
    out->data[out->size++] = (uint8_t)value;
    return 0;
}

/* length -1: null */
static inline int put_length(struct out *out, const struct field *field, int kind, int64_t length)
{
    if (length >= INT32_MAX)
        return -1;
    if (!field->classic)
        return put_varint(out, (uint32_t)(length + 1));
    return put_int(out, (uint64_t)length, kind == STRING ? 2 : 4);
}

static int put_number(struct out *out, int kind, PyObject *value)
{
    static const int sizes[] = {1, 1, 2, 2, 4, 4, 8};
    static const int64_t lows[] = {0, INT8_MIN, INT16_MIN, 0, INT32_MIN, 0, INT64_MIN};
    static const int64_t highs[] = {1, INT8_MAX, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, INT64_MAX};
    int overflow;
    if (!PyLong_Check(value))
        return -1;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number < lows[kind] || number > highs[kind])
        return -1;
    return put_int(out, (uint64_t)number, sizes[kind]);
}

static int put_bytes(struct out *out, const struct field *field, PyObject *value)
{
    if (PyBytes_CheckExact(value)) {
        Py_ssize_t size = PyBytes_GET_SIZE(value);
        return put_length(out, field, BYTES, size) < 0 ? -1 : put(out, PyBytes_AS_STRING(value), size);
    }
    if (!PyMemoryView_Check(value) && !PyByteArray_CheckExact(value))
        return -1;
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int done = put_length(out, field, BYTES, view.len);
    if (done == 0)
        done = put(out, view.buf, view.len);
    PyBuffer_Release(&view);
    return done;
}

static int put_scalar(struct out *out, const struct field *field, int kind, PyObject *value)
{
    switch (kind) {
    case BOOL:
        return PyBool_Check(value) ? put_int(out, value == Py_True, 1) : -1;
    case FLOAT64: {
        uint64_t bits;
        if (!PyFloat_CheckExact(value))
            return -1;
        double number = PyFloat_AS_DOUBLE(value);
        memcpy(&bits, &number, 8);
        return put_int(out, bits, 8);
    }
    case UUID:
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 16)
            return -1;
        return put(out, PyBytes_AS_STRING(value), 16);
    case STRING: {
        Py_ssize_t size;
        if (!PyUnicode_CheckExact(value))
            return -1;
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == NULL || size > MAX_STRING || put_length(out, field, STRING, size) < 0)
            return -1;
        return put(out, text, size);
    }
    case BYTES:
        return put_bytes(out, field, value);
    default:
        return put_number(out, kind, value);
    }
}

static int put_struct(struct out *out, const struct spec *spec, PyObject *message);

static int put_array(struct out *out, const struct field *field, PyObject *value)
{
    if (!PyList_CheckExact(value))
        return -1;
    Py_ssize_t count = PyList_GET_SIZE(value);
    if (put_length(out, field, ARRAY, count) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GET_ITEM(value, i);
        int done = field->element == STRUCT ? put_struct(out, field->inner, item)
                                            : put_scalar(out, field, field->element, item);
        if (done < 0)
            return -1;
    }
    return 0;
}

static int put_field(struct out *out, const struct field *field, PyObject *value)
{
    if (value == NULL)
        return -1;
    if (value == Py_None) {
        if (!field->nullable)
            return -1;
        return field->kind == STRUCT ? put_int(out, 255, 1) : put_length(out, field, field->kind, -1);
    }
    if (field->kind == STRUCT) {
        if (field->nullable && put_int(out, 1, 1) < 0)
            return -1;
        return put_struct(out, field->inner, value);
    }
    if (field->kind == ARRAY)
        return put_array(out, field, value);
    return put_scalar(out, field, field->kind, value);
}

static int put_tagged(struct out *out, const struct field *field, PyObject *value)
{
    if (put_varint(out, field->tag) < 0 || need(out, 1) < 0)
        return -1;
    size_t start = ++out->size;
    if (put_field(out, field, value) < 0)
        return -1;
    size_t size = out->size - start, extra = 0;
    if (size >= INT32_MAX)
        return -1;
    for (size_t rest = size >> 7; rest; rest >>= 7)
        extra++;
    if (need(out, extra + 5) < 0)
        return -1;
    memmove(out->data + start + extra, out->data + start, size);
    out->size = start - 1;
    put_varint(out, (uint32_t)size);
    out->size += size;
    return 0;
}

static int put_struct(struct out *out, const struct spec *spec, PyObject *message)
{
    if (!Py_IS_TYPE(message, spec->type) || SLOT(message, spec->unknown_tags) != no_tags)
        return -1;
    for (Py_ssize_t i = spec->tagged; i < spec->count; i++) {
        const struct field *field = &spec->fields[i];
        PyObject *value = SLOT(message, field->offset);
        if (field->place == BODY ? put_field(out, field, value) < 0
                                 : field->place == REFUSED && differs(field, value) != 0)
            return -1;
    }
    if (!spec->flexible)
        return 0;
    int present[MAX_TAGGED], count = 0;
    for (int i = 0; i < spec->tagged; i++) {
        present[i] = differs(&spec->fields[i], SLOT(message, spec->fields[i].offset));
        if (present[i] < 0)
            return -1;
        count += present[i];
    }
    if (put_varint(out, count) < 0)
        return -1;
    for (int i = 0; i < spec->tagged; i++) {
        const struct field *field = &spec->fields[i];
        if (present[i] && put_tagged(out, field, SLOT(message, field->offset)) < 0)
            return -1;
    }
    return 0;
}

static PyObject *native_encode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "encode takes a message and a version");
        return NULL;
    }
    struct spec *spec = find_spec((PyObject *)Py_TYPE(arguments[0]), arguments[1]);
    if (spec != NULL) {
        uint8_t stack[1024];
        struct out out = {stack, 0, sizeof stack, NULL};
        int done = put_struct(&out, spec, arguments[0]);
        PyObject *bytes = done < 0 ? NULL : PyBytes_FromStringAndSize((char *)out.data, out.size);
        PyMem_Free(out.heap);
        if (bytes != NULL)
            return bytes;
    }
    PyErr_Clear();
    return PyObject_Vectorcall(slow_encode, arguments, 2, NULL);
}

/* -- decoding ------------------------------------------------------------------------------ */

struct in {
    const uint8_t *at;
    const uint8_t *end;
};

static inline int64_t left(const struct in *in)
{
    return in->end - in->at;
}

static inline int get_int(struct in *in, int size, uint64_t *value)
{
    if (left(in) < size)
        return -1;
    uint64_t found = 0;
    if (left(in) >= 8) {
        for (int i = 0; i < 8; i++)
            found = found << 8 | in->at[i];
        found >>= 64 - 8 * size;
    } else {
        for (int i = 0; i < size; i++)
            found = found << 8 | in->at[i];
    }
    in->at += size;
    *value = found;
    return 0;
}

static inline int get_varint(struct in *in, int64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (in->at >= in->end)
            return -1;
        uint8_t byte = *in->at++;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = (int64_t)found;
            return found > INT32_MAX ? -1 : 0;
        }
    }
    return -1;
}

/* A negative length is null. */
static int get_length(struct in *in, const struct field *field, int kind, int64_t *length)
{
    uint64_t raw;
    if (!field->classic) {
        if (get_varint(in, length) < 0)
            return -1;
        --*length;
        return 0;
    }
    if (get_int(in, kind == STRING ? 2 : 4, &raw) < 0)
        return -1;
    *length = kind == STRING ? (int16_t)raw : (int32_t)raw;
    return 0;
}

static PyObject *get_number(struct in *in, int kind)
{
    static const int sizes[] = {1, 1, 2, 2, 4, 4, 8, 8};
    uint64_t raw;
    double number;
    if (get_int(in, sizes[kind], &raw) < 0)
        return NULL;
    switch (kind) {
    case BOOL: return PyBool_FromLong(raw != 0);
    case INT8: return PyLong_FromLong((int8_t)raw);
    case INT16: return PyLong_FromLong((int16_t)raw);
    case UINT16: return PyLong_FromLong((uint16_t)raw);
    case INT32: return PyLong_FromLong((int32_t)raw);
    case UINT32: return PyLong_FromLongLong((uint32_t)raw);
    case INT64: return PyLong_FromLongLong((int64_t)raw);
    default:
        memcpy(&number, &raw, 8);
        return PyFloat_FromDouble(number);
    }
}

/* A string or bytes of a known length, or a value of fixed size (length is not used). */
static PyObject *get_content(struct in *in, int kind, int64_t length)
{
    const char *at = (const char *)in->at;
    if (kind <= FLOAT64)
        return get_number(in, kind);
    if (kind == UUID)
        length = 16;
    if (length < 0 || length > left(in) || (kind == STRING && length > MAX_STRING))
        return NULL;
    in->at += length;
    return kind == STRING ? PyUnicode_DecodeUTF8(at, length, NULL) : PyBytes_FromStringAndSize(at, length);
}

static PyObject *get_struct(struct in *in, const struct spec *spec);

static PyObject *get_array(struct in *in, const struct field *field, int64_t count)
{
    int kind = field->element;
    if (count * field->least > left(in))
        return NULL;
    PyObject *list = PyList_New(count);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        int64_t length = 0;
        PyObject *item = NULL;
        if (kind == STRUCT)
            item = get_struct(in, field->inner);
        else if (kind < STRING || get_length(in, field, kind, &length) == 0)
            item = get_content(in, kind, length);
        if (item == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *get_field(struct in *in, const struct field *field)
{
    int64_t length = 0;
    uint64_t present;
    if (field->kind < STRING)
        return get_content(in, field->kind, 0);
    if (field->kind == STRUCT) {
        if (field->nullable) {
            if (get_int(in, 1, &present) < 0)
                return NULL;
            if ((int8_t)present < 0)
                return Py_NewRef(Py_None);
        }
        return get_struct(in, field->inner);
    }
    if (get_length(in, field, field->kind, &length) < 0)
        return NULL;
    if (length < 0)
        return field->nullable ? Py_NewRef(Py_None) : NULL;
    return field->kind == ARRAY ? get_array(in, field, length) : get_content(in, field->kind, length);
}

static int get_tagged(struct in *in, const struct spec *spec, PyObject *message)
{
    int64_t count, tag, size;
    if (get_varint(in, &count) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (get_varint(in, &tag) < 0 || get_varint(in, &size) < 0 || size > left(in))
            return -1;
        int known = 0;
        while (known < spec->tagged && spec->fields[known].tag != tag)
            known++;
        if (known == spec->tagged)
            return -1;
        const uint8_t *stop = in->at + size;
        PyObject *value = get_field(in, &spec->fields[known]);
        if (value == NULL)
            return -1;
        Py_XSETREF(SLOT(message, spec->fields[known].offset), value);
        if (in->at != stop)
            return -1;
    }
    return 0;
}

static PyObject *get_struct(struct in *in, const struct spec *spec)
{
    PyObject *message = new_object(spec);
    if (message == NULL)
        return NULL;
    for (Py_ssize_t i = spec->tagged; i < spec->count; i++) {
        const struct field *field = &spec->fields[i];
        PyObject *value = field->place == BODY ? get_field(in, field) : default_of(field);
        if (value == NULL)
            goto fault;
        SLOT(message, field->offset) = value;
    }
    if (spec->flexible && get_tagged(in, spec, message) < 0)
        goto fault;
    for (int i = 0; i < spec->tagged; i++) {
        PyObject **slot = &SLOT(message, spec->fields[i].offset);
        if (*slot == NULL && (*slot = default_of(&spec->fields[i])) == NULL)
            goto fault;
    }
    return message;
fault:
    Py_DECREF(message);
    return NULL;
}

/* The message at `*pos` of `data`, moving `*pos` behind it; NULL: Python decides. */
static PyObject *decode_at(PyObject *cls, PyObject *version, PyObject *data, Py_ssize_t *pos)
{
    struct spec *spec = find_spec(cls, version);
    if (spec == NULL || !PyBytes_CheckExact(data) || *pos < 0 || *pos > PyBytes_GET_SIZE(data))
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    struct in in = {start + *pos, start + PyBytes_GET_SIZE(data)};
    PyObject *message = get_struct(&in, spec);
    *pos = in.at - start;
    return message;
}

static PyObject *native_decode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "decode takes a class, a version and bytes");
        return NULL;
    }
    Py_ssize_t pos = 0;
    PyObject *message = decode_at(arguments[0], arguments[1], arguments[2], &pos);
    if (message != NULL && pos == PyBytes_GET_SIZE(arguments[2]))
        return message;
    Py_XDECREF(message);
    PyErr_Clear();
    return PyObject_Vectorcall(slow_decode, arguments, 3, NULL);
}

static PyObject *native_decode_prefix(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyLong_CheckExact(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "decode_prefix takes a class, a version, bytes and a position");
        return NULL;
    }
    Py_ssize_t pos = PyLong_AsSsize_t(arguments[3]);
    PyObject *message = decode_at(arguments[0], arguments[1], arguments[2], &pos);
    if (message != NULL)
        return Py_BuildValue("Nn", message, pos);
    PyErr_Clear();
    return PyObject_Vectorcall(slow_decode, arguments, 4, NULL);
}

/* -- the module ---------------------------------------------------------------------------- */

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
    if (made == NULL || codecs == NULL || no_tags == NULL ||
        PyModule_AddIntConstant(made, "FORMAT", FORMAT) < 0)
        return NULL;
    return made;
}
