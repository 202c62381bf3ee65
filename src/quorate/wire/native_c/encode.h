/* Objects to bytes. What writes gets where it stands and answers where it stands then; NULL: a fault. */
#define LENGTH 5 /* bytes of a length, at most */

struct out {
    uint8_t *start;
    uint8_t *end;
    uint8_t *heap;       /* NULL while the bytes are the caller's */
};

static uint8_t *grow(struct out *out, uint8_t *at, size_t more)
{
    size_t size = at - out->start, room = (size + more) * 2;
    uint8_t *heap = PyMem_Realloc(out->heap, room);
    if (heap == NULL)
        return NULL;
    if (out->heap == NULL)
        memcpy(heap, out->start, size);
    out->start = out->heap = heap;
    out->end = heap + room;
    return heap + size;
}

/* Where to go on writing, with room for `more` bytes. */
static inline uint8_t *need(struct out *out, uint8_t *at, size_t more)
{
    return (size_t)(out->end - at) >= more ? at : grow(out, at, more);
}

/* -- numbers and lengths: there is room ---------------------------------------------------------- */

static inline uint8_t *store16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static inline uint8_t *store32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    return at + 4;
}

static inline uint8_t *store64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (56 - 8 * i));
    return at + 8;
}

static inline uint8_t *put_varint(uint8_t *at, uint32_t value)
{
    while (value > 127) {
        *at++ = (uint8_t)(value & 127) | 128;
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* length -1: null */
static inline uint8_t *put_length(uint8_t *at, const struct field *field, int kind, int64_t length)
{
    if (!field->classic)
        return put_varint(at, (uint32_t)(length + 1));
    return kind == STRING ? store16(at, (uint16_t)length) : store32(at, (uint32_t)length);
}

static inline uint8_t *put_number(uint8_t *at, int kind, PyObject *value)
{
    int overflow = 0;
    if (!PyLong_Check(value))
        return NULL;
    int64_t number = IS_SMALL(value) ? SMALL(value) : PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
        return NULL;
    switch (kind) {
    case INT8:
        *at = (uint8_t)number;
        return number == (int8_t)number ? at + 1 : NULL;
    case INT16: return number == (int16_t)number ? store16(at, (uint16_t)number) : NULL;
    case UINT16: return number == (uint16_t)number ? store16(at, (uint16_t)number) : NULL;
    case INT32: return number == (int32_t)number ? store32(at, (uint32_t)number) : NULL;
    case UINT32: return number == (uint32_t)number ? store32(at, (uint32_t)number) : NULL;
    default: return store64(at, (uint64_t)number);
    }
}

static inline uint8_t *put_fixed(uint8_t *at, int kind, PyObject *value)
{
    switch (kind) {
    case BOOL:
        *at = value == Py_True;
        return PyBool_Check(value) ? at + 1 : NULL;
    case FLOAT64: {
        uint64_t bits;
        if (!PyFloat_CheckExact(value))
            return NULL;
        double number = PyFloat_AS_DOUBLE(value);
        memcpy(&bits, &number, 8);
        return store64(at, bits);
    }
    case UUID:
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 16)
            return NULL;
        memcpy(at, PyBytes_AS_STRING(value), 16);
        return at + 16;
    default:
        return put_number(at, kind, value);
    }
}

/* -- values of no fixed size: they make room ------------------------------------------------------ */

static inline uint8_t *
put(struct out *out, uint8_t *at, const struct field *field, int kind, const void *bytes, int64_t size)
{
    if (size >= INT32_MAX || (at = need(out, at, size + LENGTH)) == NULL)
        return NULL;
    at = put_length(at, field, kind, size);
    memcpy(at, bytes, size);
    return at + size;
}

static uint8_t *put_bytes(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    if (PyBytes_CheckExact(value))
        return put(out, at, field, BYTES, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    if (!PyMemoryView_Check(value) && !PyByteArray_CheckExact(value))
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    at = put(out, at, field, BYTES, view.buf, view.len);
    PyBuffer_Release(&view);
    return at;
}

static inline uint8_t *put_text(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    Py_ssize_t size;
    const char *text;
    if (!PyUnicode_CheckExact(value))
        return NULL;
    if (PyUnicode_IS_COMPACT_ASCII(value)) {
        text = PyUnicode_DATA(value);
        size = PyUnicode_GET_LENGTH(value);
    } else if ((text = PyUnicode_AsUTF8AndSize(value, &size)) == NULL) {
        return NULL;
    }
    return size > MAX_STRING ? NULL : put(out, at, field, STRING, text, size);
}

static uint8_t *put_struct(struct out *out, uint8_t *at, const struct spec *spec, PyObject *message);

static uint8_t *put_array(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    if (!PyList_CheckExact(value))
        return NULL;
    int kind = field->element;
    Py_ssize_t count = PyList_GET_SIZE(value);
    if (count >= INT32_MAX || (at = need(out, at, LENGTH + count * fixed_size(kind))) == NULL)
        return NULL;
    at = put_length(at, field, ARRAY, count);
    PyObject **item = ((PyListObject *)value)->ob_item, **stop = item + count;
    for (; at != NULL && item < stop; item++)
        at = kind == STRUCT   ? put_struct(out, at, field->inner, *item)
             : kind < STRING  ? put_fixed(at, kind, *item)
             : kind == STRING ? put_text(out, at, field, *item)
                              : put_bytes(out, at, field, *item);
    return at;
}

static uint8_t *put_varied(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    if (value == Py_None || field->kind == STRUCT) {
        if ((value == Py_None && !field->nullable) || (at = need(out, at, LENGTH)) == NULL)
            return NULL;
        if (field->kind != STRUCT)
            return put_length(at, field, field->kind, -1);
        if (field->nullable)
            *at++ = value != Py_None ? 1 : field->place == TAGGED ? 0 : 255;
        return value == Py_None ? at : put_struct(out, at, field->inner, value);
    }
    return field->kind == ARRAY    ? put_array(out, at, field, value)
           : field->kind == STRING ? put_text(out, at, field, value)
                                   : put_bytes(out, at, field, value);
}

static inline uint8_t *put_field(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    if (value == NULL || (at = need(out, at, field->run)) == NULL)
        return NULL;
    return field->kind < STRING ? put_fixed(at, field->kind, value) : put_varied(out, at, field, value);
}

/* -- tagged fields and structs ------------------------------------------------------------------- */

static uint8_t *put_tagged(struct out *out, uint8_t *at, const struct field *field, PyObject *value)
{
    if ((at = need(out, at, 2 * LENGTH)) == NULL)
        return NULL;
    at = put_varint(at, field->tag);
    size_t start = at + 1 - out->start; /* most sizes take a byte */
    if ((at = put_field(out, at + 1, field, value)) == NULL)
        return NULL;
    size_t size = at - out->start - start, extra = 0;
    if (size >= INT32_MAX)
        return NULL;
    for (size_t rest = size >> 7; rest; rest >>= 7)
        extra++;
    if (extra) {
        if ((at = need(out, at, extra)) == NULL)
            return NULL;
        memmove(out->start + start + extra, out->start + start, size);
    }
    return put_varint(out->start + start - 1, (uint32_t)size) + size;
}

static uint8_t *put_tags(struct out *out, uint8_t *at, const struct spec *spec, PyObject *message)
{
    int present[MAX_TAGGED], count = 0;
    for (Py_ssize_t i = 0; i < spec->tagged; i++) {
        present[i] = differs(&spec->fields[i], SLOT(message, spec->fields[i].offset));
        if (present[i] < 0)
            return NULL;
        count += present[i];
    }
    if ((at = need(out, at, LENGTH)) == NULL)
        return NULL;
    at = put_varint(at, count);
    for (Py_ssize_t i = 0; at != NULL && i < spec->tagged; i++)
        if (present[i])
            at = put_tagged(out, at, &spec->fields[i], SLOT(message, spec->fields[i].offset));
    return at;
}

static uint8_t *put_struct(struct out *out, uint8_t *at, const struct spec *spec, PyObject *message)
{
    if (!Py_IS_TYPE(message, spec->type) || SLOT(message, spec->unknown_tags) != no_tags)
        return NULL;
    const struct field *field = spec->fields + spec->tagged, *stop = spec->fields + spec->body;
    for (; field < stop; field++)
        if ((at = put_field(out, at, field, SLOT(message, field->offset))) == NULL)
            return NULL;
    for (stop = spec->fields + spec->count; field < stop; field++)
        if (field->place == REFUSED && differs(field, SLOT(message, field->offset)) != 0)
            return NULL;
    return spec->flexible ? put_tags(out, at, spec, message) : at;
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
        struct out out = {stack, stack + sizeof stack, NULL};
        const uint8_t *at = need(&out, stack, spec->size); /* as large as the last one */
        PyObject *bytes = NULL;
        if (at != NULL && (at = put_struct(&out, out.start, spec, arguments[0])) != NULL) {
            spec->size = at - out.start;
            bytes = PyBytes_FromStringAndSize((char *)out.start, spec->size);
        }
        PyMem_Free(out.heap);
        if (bytes != NULL)
            return bytes;
    }
    PyErr_Clear();
    return PyObject_Vectorcall(slow_encode, arguments, 2, NULL);
}
