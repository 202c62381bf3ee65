/* Specs: programs in C, and the objects that they describe. */
enum kind { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT, ARRAY };
enum place { BODY, TAGGED, DROPPED, REFUSED };

#define FORMAT 3 /* of the programs and functions; native.py must say the same */
#define MAX_STRING 32767
#define MAX_ARRAY_LENGTH 1000000 /* this and the next: runtime.py */
#define MAX_TAGGED_FIELDS 10000
#define MAX_TAGGED 32

struct spec;

struct field {
    Py_ssize_t offset;
    int kind;
    int run;             /* bytes of the values of fixed size that begin here; 0: looked at before */
    int element;
    int place;
    uint32_t tag;
    int nullable;
    int classic;
    int64_t least;       /* bytes of the smallest element of an array */
    PyObject *value;     /* the default; NULL: a new list or struct each time */
    PyObject *last;      /* a value as it came last: the same come again and again */
    struct spec *inner;
};

struct spec {
    PyTypeObject *type;
    struct family *family;
    Py_ssize_t unknown_tags;
    int flexible;
    Py_ssize_t tagged;   /* fields before here are tagged, ascending by tag */
    Py_ssize_t body;     /* fields before here are in the body, in the order of the bytes */
    Py_ssize_t count;    /* the rest is not in this version */
    struct field *fields;
    size_t size;         /* of the message that was encoded last */
};

static PyObject *codecs;      /* class -> list of capsules (struct spec) by version */
static PyObject *slow_encode; /* (message, version) -> bytes */
static PyObject *slow_decode; /* (class, version, bytes[, pos]) -> message[, pos] */

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

/* How many bytes a value takes; 0: it depends. */
static int fixed_size(int kind)
{
    static const int sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16};
    return kind <= UUID ? sizes[kind] : 0;
}

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
    field->last = NULL;
    field->inner = NULL;
    if (inner != Py_None && (field->inner = new_spec(inner)) == NULL)
        return -1;
    int structs = field->kind == STRUCT || (field->kind == ARRAY && field->element == STRUCT);
    if (structs != (field->inner != NULL) || field->least < 1 ||
        field->kind < BOOL || field->kind > ARRAY || field->element < BOOL || field->element > STRUCT ||
        field->least < fixed_size(field->element)) {
        PyErr_SetString(PyExc_ValueError, "not a program");
        return -1;
    }
    field->run = fixed_size(field->kind);
    return 0;
}

/* Read the fields of a program, and join the runs of its body. */
static int read_fields(struct spec *spec, PyTypeObject *type, PyObject *entries)
{
    for (Py_ssize_t i = 0; i < spec->count; i++) {
        struct field *field = &spec->fields[i];
        if (read_field(field, type, PyTuple_GET_ITEM(entries, i)) < 0)
            return -1;
        spec->tagged += field->place == TAGGED;
        spec->body += field->place == TAGGED || field->place == BODY;
        if (i >= (field->place == TAGGED ? spec->tagged : field->place == BODY ? spec->body : spec->count)) {
            PyErr_SetString(PyExc_ValueError, "not a program");
            return -1;
        }
    }
    for (Py_ssize_t i = spec->body - 2; i >= spec->tagged; i--)
        if (spec->fields[i].run) {
            spec->fields[i].run += spec->fields[i + 1].run;
            spec->fields[i + 1].run = 0;
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
    spec->count = count;
    spec->fields = fields;
    if (read_fields(spec, type, entries) < 0)
        return NULL;
    if (spec->tagged > MAX_TAGGED) {
        PyErr_SetString(PyExc_ValueError, "too many tagged fields");
        return NULL;
    }
    spec->type = (PyTypeObject *)Py_NewRef(type);
    spec->family = family_for(type, count + 1);
    spec->flexible = flexible;
    return spec;
}

/* The spec of a version; NULL: not learned. Most calls ask for one of few. */
static struct spec *find_spec(PyObject *cls, PyObject *version)
{
    static struct { PyObject *cls; Py_ssize_t version; struct spec *spec; } found[64];
    if (!PyLong_CheckExact(version) || !IS_SMALL(version))
        return NULL;
    Py_ssize_t index = (Py_ssize_t)SMALL(version);
    size_t at = (((uintptr_t)cls >> 4) ^ (size_t)index) % 64;
    if (found[at].cls == cls && found[at].version == index)
        return found[at].spec;
    PyObject *versions = PyDict_GetItemWithError(codecs, cls);
    if (versions == NULL || index < 0 || index >= PyList_GET_SIZE(versions))
        return NULL;
    PyObject *capsule = PyList_GET_ITEM(versions, index);
    if (capsule == Py_None)
        return NULL;
    found[at].cls = cls; /* lives as long as the process: its spec holds it */
    found[at].version = index;
    return found[at].spec = PyCapsule_GetPointer(capsule, NULL);
}

/* -- objects ------------------------------------------------------------------------------- */

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* 1: not the default; 0: the default; -1: a fault. */
static int differs(const struct field *field, PyObject *value)
{
    if (value == NULL)
        return -1;
    if (field->value != NULL) {
        if (value == field->value)
            return 0;
        if (PyLong_CheckExact(value) && PyLong_CheckExact(field->value) && IS_SMALL(value) && IS_SMALL(field->value))
            return SMALL(value) != SMALL(field->value);
        if (field->value == Py_None)
            return 1;
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
        const struct field *own = &inner->fields[i];
        PyObject *held = SLOT(value, own->offset);
        int found = held == own->value && held != NULL ? 0 : differs(own, held);
        if (found)
            return found;
    }
    return 0;
}
