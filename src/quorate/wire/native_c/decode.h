/* Bytes to objects. A fault is -1 or NULL; nothing is read beyond `end`. */
#define FAMILIAR 64 /* bytes of a text that is kept */

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

/* A number beyond those that Python keeps itself. */
static inline PyObject *get_familiar_number(const struct field *field, int64_t number)
{
    PyObject *last = field->last;
    if (last != NULL && IS_SMALL(last) && SMALL(last) == number)
        return Py_NewRef(last);
    PyObject *made = PyLong_FromLongLong(number);
    if (made != NULL)
        Py_XSETREF(((struct field *)field)->last, Py_NewRef(made));
    return made;
}

static inline PyObject *get_number(struct in *in, const struct field *field, int kind)
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
    case INT32: {
        int32_t value = (int32_t)raw;
        return value < -5 || value > 256 ? get_familiar_number(field, value) : PyLong_FromLong(value);
    }
    case UINT32: return PyLong_FromLongLong((uint32_t)raw);
    case INT64: return PyLong_FromLongLong((int64_t)raw);
    default:
        memcpy(&number, &raw, 8);
        return PyFloat_FromDouble(number);
    }
}

/* A short text or a uuid. */
static inline PyObject *get_familiar(const struct field *field, int kind, const char *at, int64_t length)
{
    PyObject *last = field->last, *made;
    if (last != NULL) {
        if (kind == UUID ? memcmp(PyBytes_AS_STRING(last), at, 16) == 0
                         : PyUnicode_GET_LENGTH(last) == length && memcmp(PyUnicode_DATA(last), at, length) == 0)
            return Py_NewRef(last);
    }
    made = kind == UUID ? PyBytes_FromStringAndSize(at, 16) : PyUnicode_DecodeUTF8(at, length, NULL);
    if (made != NULL && (kind == UUID || PyUnicode_IS_COMPACT_ASCII(made)))
        Py_XSETREF(((struct field *)field)->last, Py_NewRef(made));
    return made;
}

/* A string or bytes of a known length, or a value of fixed size (length is not used). */
static PyObject *get_content(struct in *in, const struct field *field, int kind, int64_t length)
{
    const char *at = (const char *)in->at;
    if (kind <= FLOAT64)
        return get_number(in, field, kind);
    if (kind == UUID)
        length = 16;
    if (length < 0 || length > left(in) || (kind == STRING && length > MAX_STRING))
        return NULL;
    in->at += length;
    if (kind == UUID || (kind == STRING && length <= FAMILIAR))
        return get_familiar(field, kind, at, length);
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
            item = get_content(in, field, kind, length);
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
        return get_content(in, field, field->kind, 0);
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
    return field->kind == ARRAY ? get_array(in, field, length) : get_content(in, field, field->kind, length);
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
        PyObject *value = field->place == BODY ? get_field(in, field)
                          : field->value != NULL ? Py_NewRef(field->value) : default_of(field);
        if (value == NULL)
            goto fault;
        SLOT(message, field->offset) = value;
    }
    if (spec->flexible && get_tagged(in, spec, message) < 0)
        goto fault;
    for (int i = 0; i < spec->tagged; i++) {
        PyObject **slot = &SLOT(message, spec->fields[i].offset);
        if (*slot != NULL)
            continue;
        *slot = spec->fields[i].value != NULL ? Py_NewRef(spec->fields[i].value) : default_of(&spec->fields[i]);
        if (*slot == NULL)
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
    int collects = PyGC_Disable(); /* all that is made here lives on, or dies without its help */
    PyObject *message = get_struct(&in, spec);
    if (collects)
        PyGC_Enable();
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
