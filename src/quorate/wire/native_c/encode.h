/* Objects to bytes. Every function returns 0, or -1 for a fault. */
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
    int overflow = 0;
    if (!PyLong_Check(value))
        return -1;
    int64_t number = IS_SMALL(value) ? SMALL(value) : PyLong_AsLongLongAndOverflow(value, &overflow);
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
