/* Many records at once, without an object for any of them: where their values lie in a log, and
 * their JSON. What is unusual is left to Python here too; it is marked as such.
 */
#define MAX_COLUMNS 64

struct column {
    const char *head;    /* what stands before the value: ,"name": */
    Py_ssize_t head_size;
    int kind;            /* no struct, float or bytes */
    int element;         /* of an array: INT32 or UUID */
    int64_t tag;         /* -1: not tagged */
    int nullable;
    const char *unsaid;  /* the JSON of a tagged field's default, which is left out */
    Py_ssize_t unsaid_size;
};

struct text {
    PyObject *bytes;
    char *at;
    char *end;
};

static const int widths[] = {1, 1, 2, 2, 4, 4, 8, 8, 16};

static int make_room(struct text *text, Py_ssize_t size)
{
    if (text->end - text->at >= size)
        return 0;
    Py_ssize_t used = text->at - PyBytes_AS_STRING(text->bytes);
    Py_ssize_t whole = (used + size) * 2;
    if (_PyBytes_Resize(&text->bytes, whole) < 0)
        return -1;
    text->at = PyBytes_AS_STRING(text->bytes) + used;
    text->end = PyBytes_AS_STRING(text->bytes) + whole;
    return 0;
}

/* -- reading: NULL is a fault ---------------------------------------------------------------- */

/* The shortest spelling of a number below 2^14; others are unusual. */
static inline const uint8_t *small_varint(const uint8_t *at, const uint8_t *end, int64_t *value)
{
    if (at >= end)
        return NULL;
    *value = *at++;
    if (*value < 128)
        return at;
    if (at >= end || *at == 0 || *at >= 128)
        return NULL;
    *value = (*value & 127) | *at << 7;
    return at + 1;
}

static inline const uint8_t *behind_value(const struct column *column, const uint8_t *at, const uint8_t *end)
{
    int64_t size;
    if (column->kind <= UUID)
        return end - at < widths[column->kind] ? NULL : at + widths[column->kind];
    if ((at = small_varint(at, end, &size)) == NULL || (size == 0 && !column->nullable))
        return NULL;
    size = size == 0 ? 0 : (size - 1) * (column->kind == ARRAY ? widths[column->element] : 1);
    return end - at < size ? NULL : at + size;
}

/* Where the value of each column begins, NULL of a tagged one that is not there; -1 is a fault. */
static int find_values(const struct column *columns, int count, const uint8_t *at, const uint8_t *end,
                       const uint8_t **found)
{
    int64_t tags, tag, size, last = -1;
    for (int i = 0; i < count; i++) {
        found[i] = columns[i].tag < 0 ? at : NULL;
        if (columns[i].tag < 0 && (at = behind_value(&columns[i], at, end)) == NULL)
            return -1;
    }
    if ((at = small_varint(at, end, &tags)) == NULL)
        return -1;
    for (; tags > 0; tags--, last = tag) {
        if ((at = small_varint(at, end, &tag)) == NULL || (at = small_varint(at, end, &size)) == NULL ||
            tag <= last || end - at < size)
            return -1;
        for (int i = 0; i < count; i++)
            if (columns[i].tag == tag) {
                if (behind_value(&columns[i], at, at + size) != at + size)
                    return -1;
                found[i] = at;
            }
        at += size;
    }
    return at == end ? 0 : -1;
}

/* -- writing: there is room; NULL is a fault --------------------------------------------------- */

static inline char *print_text(char *out, const char *text, Py_ssize_t size)
{
    memcpy(out, text, size);
    return out + size;
}

static inline char *print_number(char *out, int64_t value)
{
    char digits[20];
    int count = 0;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        *out++ = '-';
    do
        digits[count++] = '0' + left % 10;
    while ((left /= 10) > 0);
    while (count > 0)
        *out++ = digits[--count];
    return out;
}

static inline char *print_uuid(char *out, const uint8_t *at)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    *out++ = '"';
    for (int i = 0; i < 15; i += 3) {
        uint32_t triple = at[i] << 16 | at[i + 1] << 8 | at[i + 2];
        *out++ = digits[triple >> 18];
        *out++ = digits[triple >> 12 & 63];
        *out++ = digits[triple >> 6 & 63];
        *out++ = digits[triple & 63];
    }
    *out++ = digits[at[15] >> 2];
    *out++ = digits[(at[15] & 3) << 4];
    *out++ = '"';
    return out;
}

static inline char *print_fixed(char *out, int kind, const uint8_t *at)
{
    uint64_t raw = 0;
    if (kind == UUID)
        return print_uuid(out, at);
    for (int i = 0; i < widths[kind]; i++)
        raw = raw << 8 | at[i];
    switch (kind) {
    case BOOL: return raw > 1 ? NULL : raw ? print_text(out, "true", 4) : print_text(out, "false", 5);
    case INT8: return print_number(out, (int8_t)raw);
    case INT16: return print_number(out, (int16_t)raw);
    case INT32: return print_number(out, (int32_t)raw);
    default: return print_number(out, (int64_t)raw);
    }
}

/* Text with nothing that JSON must escape, and that is surely UTF-8. */
static inline char *print_string(char *out, const uint8_t *at, int64_t size)
{
    *out++ = '"';
    for (int64_t i = 0; i < size; i++) {
        if (at[i] < 32 || at[i] >= 128 || at[i] == '"' || at[i] == '\\')
            return NULL;
        *out++ = at[i];
    }
    *out++ = '"';
    return out;
}

/* A value whose bounds were looked at. */
static char *print_value(char *out, const struct column *column, const uint8_t *at)
{
    int64_t size;
    if (column->kind <= UUID)
        return print_fixed(out, column->kind, at);
    at = small_varint(at, at + 2, &size);
    if (size-- == 0)
        return print_text(out, "null", 4);
    if (column->kind == STRING)
        return print_string(out, at, size);
    *out++ = '[';
    for (; size > 0; size--, at += widths[column->element]) {
        out = print_fixed(out, column->element, at);
        if (size > 1)
            *out++ = ',';
    }
    *out++ = ']';
    return out;
}

/* The first comma becomes the brace. */
static char *print_object(char *start, const struct column *columns, int count, const uint8_t **found)
{
    char *out = start;
    for (int i = 0; i < count; i++) {
        if (found[i] == NULL)
            continue;
        char *value = print_text(out, columns[i].head, columns[i].head_size);
        char *after = print_value(value, &columns[i], found[i]);
        if (after == NULL)
            return NULL;
        if (columns[i].unsaid == NULL || after - value != columns[i].unsaid_size ||
            memcmp(value, columns[i].unsaid, after - value) != 0)
            out = after;
    }
    if (out == start)
        out++;
    *start = '{';
    *out++ = '}';
    return out;
}

/* -- what Python calls ------------------------------------------------------------------------- */

static int read_columns(PyObject *program, struct column *columns)
{
    Py_ssize_t count = PyTuple_GET_SIZE(program);
    if (count > MAX_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "too many columns");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct column *one = &columns[i];
        long long tag;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(program, i), "y#iiLpz#", &one->head, &one->head_size, &one->kind,
                              &one->element, &tag, &one->nullable, &one->unsaid, &one->unsaid_size))
            return -1;
        one->tag = tag;
        if (one->kind < BOOL || one->kind > ARRAY || one->kind == FLOAT64 || one->kind == BYTES ||
            one->kind == STRUCT || (one->kind == ARRAY && one->element != INT32 && one->element != UUID)) {
            PyErr_SetString(PyExc_ValueError, "not a column");
            return -1;
        }
    }
    return (int)count;
}

/* True when places of this buffer are int64, and as many as those of the other. */
static int are_places(const Py_buffer *one, const Py_buffer *other)
{
    if (one->len % 8 == 0 && one->len == other->len)
        return 1;
    PyErr_SetString(PyExc_ValueError, "starts and ends are int64, as many of each");
    return 0;
}

static PyObject *print_records(const struct column *columns, int count, const Py_buffer *data,
                               const int64_t *starts, const int64_t *ends, Py_ssize_t records)
{
    Py_ssize_t constant = 16, printed = 0;
    for (int i = 0; i < count; i++)
        constant += columns[i].head_size;
    struct text text = {PyBytes_FromStringAndSize(NULL, records * (constant + 64)), NULL, NULL};
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, (records + 1) * 4);
    PyObject *sound = PyBytes_FromStringAndSize(NULL, records);
    if (text.bytes == NULL || offsets == NULL || sound == NULL)
        goto fault;
    text.at = PyBytes_AS_STRING(text.bytes);
    text.end = text.at + PyBytes_GET_SIZE(text.bytes);
    int32_t *offset = (int32_t *)PyBytes_AS_STRING(offsets);
    char *good = PyBytes_AS_STRING(sound);
    const uint8_t *bytes = data->buf;
    *offset++ = 0;
    for (Py_ssize_t i = 0; i < records; i++) {
        const uint8_t *found[MAX_COLUMNS];
        int64_t start = starts[i], end = ends[i];
        good[i] = 0;
        if (start < 0 || start > end || end > data->len ||
            find_values(columns, count, bytes + start, bytes + end, found) < 0)
            continue;
        if (make_room(&text, constant + 6 * (end - start)) < 0)
            goto fault;
        char *after = print_object(text.at, columns, count, found);
        if (after == NULL)
            continue;
        text.at = after;
        Py_ssize_t size = after - PyBytes_AS_STRING(text.bytes);
        if (size > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "more than 2 GiB of text");
            goto fault;
        }
        offset[printed++] = (int32_t)size;
        good[i] = 1;
    }
    if (_PyBytes_Resize(&text.bytes, text.at - PyBytes_AS_STRING(text.bytes)) < 0 ||
        _PyBytes_Resize(&offsets, (printed + 1) * 4) < 0)
        goto fault;
    return Py_BuildValue("NNN", text.bytes, offsets, sound);
fault:
    Py_XDECREF(text.bytes);
    Py_XDECREF(offsets);
    Py_XDECREF(sound);
    return NULL;
}

/* (columns, data, starts, ends) -> the text of the sound ones, its offsets (int32), which are sound (a byte each) */
static PyObject *native_json_texts(PyObject *self, PyObject *arguments)
{
    struct column columns[MAX_COLUMNS];
    PyObject *program, *made = NULL;
    Py_buffer data, starts, ends;
    if (!PyArg_ParseTuple(arguments, "O!y*y*y*", &PyTuple_Type, &program, &data, &starts, &ends))
        return NULL;
    int count = read_columns(program, columns);
    if (count >= 0 && are_places(&starts, &ends))
        made = print_records(columns, count, &data, starts.buf, ends.buf, starts.len / 8);
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&ends);
    return made;
}

/* Bounds of the values of a batch without keys, as Kafka writes it; 0: it is not, or not so. */
static int find_bounds(const uint8_t *data, const uint8_t *at, const uint8_t *end, int64_t count,
                       int64_t *starts, int64_t *ends)
{
    for (int64_t index = 0; index < count; index++) {
        int64_t length, delta = 0, size;
        if ((at = small_varint(at, end, &length)) == NULL || length & 1 || end - at < length >> 1)
            return 0;
        const uint8_t *stop = at + (length >> 1);
        if (stop - at < 6 || at[0] | at[1])
            return 0;
        at += 2;
        for (int shift = 0; ; shift += 7) { /* at most three bytes, and any spelling */
            if (shift == 21 || at >= stop)
                return 0;
            delta |= (int64_t)(*at & 127) << shift;
            if (*at++ < 128)
                break;
        }
        if (delta != index << 1 || at >= stop || *at++ != 1) /* no key: -1 in zigzag */
            return 0;
        if ((at = small_varint(at, stop, &size)) == NULL || size & 1 || size == 0 ||
            stop - at != (size >> 1) + 1 || stop[-1] != 0)
            return 0;
        starts[index] = at - data;
        ends[index] = stop - 1 - data;
        at = stop;
    }
    return at == end;
}

/* (data, starts, ends, counts of batches) -> starts and ends of values (int64), which batches are plain */
static PyObject *native_value_bounds(PyObject *self, PyObject *arguments)
{
    Py_buffer data, starts, ends, counts;
    PyObject *firsts = NULL, *lasts = NULL, *plain = NULL, *made = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*", &data, &starts, &ends, &counts))
        return NULL;
    if (!are_places(&starts, &ends) || !are_places(&starts, &counts))
        goto done;
    const int64_t *start = starts.buf, *end = ends.buf, *count = counts.buf;
    const uint8_t *bytes = data.buf;
    Py_ssize_t batches = starts.len / 8, most = 0, found = 0;
    plain = PyBytes_FromStringAndSize(NULL, batches);
    if (plain == NULL)
        goto done;
    char *good = PyBytes_AS_STRING(plain);
    for (Py_ssize_t i = 0; i < batches; i++) { /* a record has eight bytes at least */
        good[i] = start[i] >= 0 && start[i] <= end[i] && end[i] <= data.len && count[i] > 0 &&
                  count[i] <= (end[i] - start[i]) / 8;
        most += good[i] ? count[i] : 0;
    }
    firsts = PyBytes_FromStringAndSize(NULL, most * 8);
    lasts = PyBytes_FromStringAndSize(NULL, most * 8);
    if (firsts == NULL || lasts == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < batches; i++) {
        if (good[i])
            good[i] = find_bounds(bytes, bytes + start[i], bytes + end[i], count[i],
                                  (int64_t *)PyBytes_AS_STRING(firsts) + found,
                                  (int64_t *)PyBytes_AS_STRING(lasts) + found);
        found += good[i] ? count[i] : 0;
    }
    if (_PyBytes_Resize(&firsts, found * 8) < 0 || _PyBytes_Resize(&lasts, found * 8) < 0)
        goto done;
    made = Py_BuildValue("OOO", firsts, lasts, plain);
done:
    Py_XDECREF(firsts);
    Py_XDECREF(lasts);
    Py_XDECREF(plain);
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&counts);
    return made;
}
