/* Bytes to objects. What reads gets where it stands and answers where it stands then; NULL: a fault.
 *
 * Nothing is read at `end` or beyond. Values go into slots that may hold what an object had when it
 * was last in use (recycle.h): what is the same stays, lists and structs are filled anew.
 */
static PyObject *small_numbers[262]; /* -5 to 256: those that Python keeps itself */

static int keep_small_numbers(void)
{
    for (int i = 0; i < 262; i++)
        if ((small_numbers[i] = PyLong_FromLong(i - 5)) == NULL)
            return -1;
    return 0;
}

static inline uint16_t load16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t load32(const uint8_t *at)
{
    return (uint32_t)load16(at) << 16 | load16(at + 2);
}

static inline uint64_t load64(const uint8_t *at)
{
    return (uint64_t)load32(at) << 32 | load32(at + 4);
}

static inline void keep(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;
    if (old == value)
        return;
    *slot = Py_NewRef(value);
    Py_XDECREF(old);
}

/* Steals the value; NULL is a fault. */
static inline int put_away(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;
    if (value == NULL)
        return -1;
    *slot = value;
    Py_XDECREF(old);
    return 0;
}

/* -- numbers, texts and bytes ------------------------------------------------------------------ */

static inline int is_number(PyObject *value, int64_t number)
{
    return value != NULL && PyLong_CheckExact(value) && IS_SMALL(value) && SMALL(value) == number;
}

static int get_large_number(struct field *field, int64_t number, PyObject **slot)
{
    if (is_number(*slot, number))
        return 0;
    if (!is_number(field->last, number)) {
        PyObject *made = PyLong_FromLongLong(number);
        if (put_away(&field->last, made) < 0)
            return -1;
    }
    keep(slot, field->last);
    return 0;
}

static inline int get_number(struct field *field, int64_t number, PyObject **slot)
{
    if ((uint64_t)number + 5 >= 262)
        return get_large_number(field, number, slot);
    keep(slot, small_numbers[number + 5]);
    return 0;
}

static inline int is_text(PyObject *value, const char *at, int64_t length)
{
    return value != NULL && PyUnicode_CheckExact(value) && PyUnicode_IS_COMPACT_ASCII(value) &&
           PyUnicode_GET_LENGTH(value) == length && memcmp(PyUnicode_DATA(value), at, length) == 0;
}

static inline int is_uuid(PyObject *value, const char *at)
{
    return value != NULL && PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) == 16 &&
           memcmp(PyBytes_AS_STRING(value), at, 16) == 0;
}

static int get_uuid(struct field *field, const char *at, PyObject **slot)
{
    if (is_uuid(*slot, at))
        return 0;
    if (!is_uuid(field->last, at) && put_away(&field->last, PyBytes_FromStringAndSize(at, 16)) < 0)
        return -1;
    keep(slot, field->last);
    return 0;
}

static int get_text(struct field *field, const char *at, int64_t length, PyObject **slot)
{
    if (length > MAX_STRING)
        return -1;
    if (is_text(*slot, at, length))
        return 0;
    if (length > FAMILIAR)
        return put_away(slot, PyUnicode_DecodeUTF8(at, length, NULL));
    if (!is_text(field->last, at, length) && put_away(&field->last, PyUnicode_DecodeUTF8(at, length, NULL)) < 0)
        return -1;
    keep(slot, field->last);
    return 0;
}

static inline void forget_hash(PyObject *bytes)
{
    _Py_COMP_DIAG_PUSH
    _Py_COMP_DIAG_IGNORE_DEPR_DECLS /* it is deprecated for those who would read it */
    ((PyBytesObject *)bytes)->ob_shash = -1;
    _Py_COMP_DIAG_POP
}

/* Bytes without another reference are written over where the size is the same. */
static int get_bytes(const char *at, int64_t length, PyObject **slot)
{
    PyObject *old = *slot;
    if (old == NULL || !PyBytes_CheckExact(old) || Py_REFCNT(old) != 1 || PyBytes_GET_SIZE(old) != length)
        return put_away(slot, PyBytes_FromStringAndSize(at, length));
    memcpy(PyBytes_AS_STRING(old), at, length);
    forget_hash(old);
    return 0;
}

/* A value of fixed size; its bytes are there. */
static inline const uint8_t *get_fixed(const uint8_t *at, struct field *field, int kind, PyObject **slot)
{
    int64_t number;
    int size;
    switch (kind) {
    case BOOL:
        keep(slot, *at ? Py_True : Py_False);
        return at + 1;
    case FLOAT64: {
        uint64_t raw = load64(at);
        double real;
        memcpy(&real, &raw, 8);
        return put_away(slot, PyFloat_FromDouble(real)) < 0 ? NULL : at + 8;
    }
    case UUID:
        return get_uuid(field, (const char *)at, slot) < 0 ? NULL : at + 16;
    case INT8: number = (int8_t)*at, size = 1; break;
    case INT16: number = (int16_t)load16(at), size = 2; break;
    case UINT16: number = load16(at), size = 2; break;
    case INT32: number = (int32_t)load32(at), size = 4; break;
    case UINT32: number = load32(at), size = 4; break;
    default: number = (int64_t)load64(at), size = 8; break;
    }
    return get_number(field, number, slot) < 0 ? NULL : at + size;
}

/* -- lengths ----------------------------------------------------------------------------------- */

static inline const uint8_t *get_varint(const uint8_t *at, const uint8_t *end, int64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; shift < 35 && at < end; shift += 7) {
        uint8_t byte = *at++;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = (int64_t)found;
            return found > INT32_MAX ? NULL : at;
        }
    }
    return NULL;
}

/* A negative length is null. */
static inline const uint8_t *
get_length(const uint8_t *at, const uint8_t *end, const struct field *field, int kind, int64_t *length)
{
    if (!field->classic) {
        at = get_varint(at, end, length);
        --*length;
        return at;
    }
    int size = kind == STRING ? 2 : 4;
    if (end - at < size)
        return NULL;
    *length = kind == STRING ? (int16_t)load16(at) : (int32_t)load32(at);
    return at + size;
}

/* -- structs and lists ------------------------------------------------------------------------- */

/* 1: the garbage collector does not look at what is made. Messages have no cycles, and to look at a million
 * structs again and again would hold the interpreter. */
static int untracked = 0;

/* The struct to fill in a slot: what is there without another reference, or a new one. */
static inline PyObject *own_struct(const struct spec *spec, PyObject **slot)
{
    PyObject *old = *slot;
    if (old != NULL && Py_IS_TYPE(old, spec->type) && Py_REFCNT(old) == 1)
        return old;
    PyObject *made = object_of_family(spec->family, spec->type);
    if (untracked && made != NULL)
        PyObject_GC_UnTrack(made);
    return put_away(slot, made) < 0 ? NULL : made;
}

static inline PyObject *own_list(int64_t count, PyObject **slot)
{
    PyObject *old = *slot;
    if (old != NULL && PyList_CheckExact(old) && Py_REFCNT(old) == 1 && PyList_GET_SIZE(old) == count)
        return old;
    PyObject *made = PyList_New(count);
    if (untracked && made != NULL)
        PyObject_GC_UnTrack(made);
    return put_away(slot, made) < 0 ? NULL : made;
}

static int default_struct(const struct spec *spec, PyObject **slot);

static inline int get_default(const struct field *field, PyObject **slot)
{
    if (field->value == NULL)
        return field->kind == ARRAY ? -(own_list(0, slot) == NULL) : default_struct(field->inner, slot);
    keep(slot, field->value);
    return 0;
}

static int default_struct(const struct spec *spec, PyObject **slot)
{
    PyObject *object = own_struct(spec, slot);
    if (object == NULL)
        return -1;
    keep(&SLOT(object, spec->unknown_tags), no_tags);
    for (Py_ssize_t i = 0; i < spec->count; i++)
        if (get_default(&spec->fields[i], &SLOT(object, spec->fields[i].offset)) < 0)
            return -1;
    return 0;
}

static const uint8_t *get_struct(const uint8_t *at, const uint8_t *end, const struct spec *spec, PyObject **slot);

/* A string or bytes. */
static inline const uint8_t *
get_content(const uint8_t *at, const uint8_t *end, struct field *field, int kind, int64_t length, PyObject **slot)
{
    const char *start = (const char *)at;
    if (length < 0 || length > end - at)
        return NULL;
    int done = kind == STRING ? get_text(field, start, length, slot) : get_bytes(start, length, slot);
    return done < 0 ? NULL : at + length;
}

static const uint8_t *
get_array(const uint8_t *at, const uint8_t *end, struct field *field, int64_t count, PyObject **slot)
{
    int kind = field->element;
    if (count > MAX_ARRAY_LENGTH || count * field->least > end - at)
        return NULL;
    PyObject *list = own_list(count, slot);
    if (list == NULL)
        return NULL;
    PyObject **item = ((PyListObject *)list)->ob_item, **stop = item + count;
    int64_t length = 0;
    for (; at != NULL && item < stop; item++) {
        if (kind == STRUCT)
            at = get_struct(at, end, field->inner, item);
        else if (kind < STRING)
            at = get_fixed(at, field, kind, item);
        else if ((at = get_length(at, end, field, kind, &length)) != NULL)
            at = get_content(at, end, field, kind, length, item);
    }
    return at;
}

/* A value of no fixed size. */
static const uint8_t *get_varied(const uint8_t *at, const uint8_t *end, struct field *field, PyObject **slot)
{
    int64_t length = 0;
    int null;
    if (field->kind != STRUCT) {
        at = get_length(at, end, field, field->kind, &length);
        null = length < 0;
    } else if ((null = field->nullable)) {
        if (at == end)
            return NULL;
        if (field->place == TAGGED && *at > 1)
            return NULL;
        null = field->place == TAGGED ? *at++ == 0 : (int8_t)*at++ < 0;
    }
    if (at == NULL || (null && !field->nullable))
        return NULL;
    if (null) {
        keep(slot, Py_None);
        return at;
    }
    if (field->kind == STRUCT)
        return get_struct(at, end, field->inner, slot);
    return field->kind == ARRAY ? get_array(at, end, field, length, slot)
                                : get_content(at, end, field, field->kind, length, slot);
}

static inline const uint8_t *get_field(const uint8_t *at, const uint8_t *end, struct field *field, PyObject **slot)
{
    if (end - at < field->run)
        return NULL;
    return field->kind < STRING ? get_fixed(at, field, field->kind, slot) : get_varied(at, end, field, slot);
}

/* The tagged fields; `seen` has a bit for each that came. */
static const uint8_t *
get_tagged(const uint8_t *at, const uint8_t *end, const struct spec *spec, PyObject *message, uint32_t *seen)
{
    int64_t count, tag, size;
    if ((at = get_varint(at, end, &count)) == NULL || count > MAX_TAGGED_FIELDS || count > end - at)
        return NULL;
    for (; count > 0; count--) {
        if ((at = get_varint(at, end, &tag)) == NULL || (at = get_varint(at, end, &size)) == NULL || size > end - at)
            return NULL;
        int known = 0;
        while (known < spec->tagged && spec->fields[known].tag != tag)
            known++;
        if (known == spec->tagged)
            return NULL;
        struct field *field = &spec->fields[known];
        const uint8_t *stop = at + size;
        if ((at = get_field(at, end, field, &SLOT(message, field->offset))) != stop)
            return NULL;
        *seen |= (uint32_t)1 << known;
    }
    return at;
}

static const uint8_t *get_struct(const uint8_t *at, const uint8_t *end, const struct spec *spec, PyObject **slot)
{
    PyObject *message = own_struct(spec, slot);
    if (message == NULL)
        return NULL;
    keep(&SLOT(message, spec->unknown_tags), no_tags);
    struct field *field = spec->fields + spec->tagged, *stop = spec->fields + spec->body;
    for (; field < stop; field++)
        if ((at = get_field(at, end, field, &SLOT(message, field->offset))) == NULL)
            return NULL;
    uint32_t seen = 0;
    if (spec->flexible && (at = get_tagged(at, end, spec, message, &seen)) == NULL)
        return NULL;
    for (stop = spec->fields + spec->count; field < stop; field++)
        if (get_default(field, &SLOT(message, field->offset)) < 0)
            return NULL;
    for (field = spec->fields; field < spec->fields + spec->tagged; field++, seen >>= 1)
        if (!(seen & 1) && get_default(field, &SLOT(message, field->offset)) < 0)
            return NULL;
    return at;
}

/* -- messages ---------------------------------------------------------------------------------- */

/* The message at `*pos` of `data`, moving `*pos` behind it; NULL: Python decides. */
static PyObject *decode_at(PyObject *cls, PyObject *version, PyObject *data, Py_ssize_t *pos)
{
    struct spec *spec = find_spec(cls, version);
    if (spec == NULL || !PyBytes_CheckExact(data) || *pos < 0 || *pos > PyBytes_GET_SIZE(data))
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    PyObject *message = NULL;
    int collects = PyGC_Disable(); /* all that is made here lives on, or dies without its help */
    const uint8_t *at = get_struct(start + *pos, start + PyBytes_GET_SIZE(data), spec, &message);
    if (collects)
        PyGC_Enable();
    if (at == NULL)
        Py_CLEAR(message);
    else
        *pos = at - start;
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

/* Append structs to the list while they end before `stop`; where the next one begins. */
static const uint8_t *
get_items(PyObject *list, const uint8_t *at, const uint8_t *stop, const struct spec *spec, int64_t count)
{
    while (at < stop && PyList_GET_SIZE(list) < count) {
        PyObject *item = NULL;
        const uint8_t *next = get_struct(at, stop, spec, &item);
        int failed = next == NULL || PyList_Append(list, item) < 0;
        Py_XDECREF(item);
        if (failed)
            break;
        at = next;
    }
    PyErr_Clear();
    return at;
}

/* (spec, bytes, pos, stop, count) -> structs, pos: as many as end before `stop` and are nothing unusual. */
static PyObject *native_decode_items(PyObject *self, PyObject *arguments)
{
    PyObject *capsule, *data;
    Py_ssize_t pos, stop, count;
    if (!PyArg_ParseTuple(arguments, "OSnnn", &capsule, &data, &pos, &stop, &count))
        return NULL;
    struct spec *spec = PyCapsule_GetPointer(capsule, NULL);
    if (spec == NULL)
        return NULL;
    if (pos < 0 || stop > PyBytes_GET_SIZE(data)) {
        PyErr_SetString(PyExc_ValueError, "beyond the bytes");
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (list == NULL)
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    int collects = PyGC_Disable();
    untracked = 1;
    pos = get_items(list, start + pos, start + stop, spec, count) - start;
    untracked = 0;
    if (collects)
        PyGC_Enable();
    return Py_BuildValue("Nn", list, pos);
}
