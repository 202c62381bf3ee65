/* Message objects that are used again: a node makes and drops the same few families all day.
 *
 * A type whose objects are nothing but slots gets a deallocator of its own, which keeps the last few
 * objects; `object_of_family` takes them from there. A kept object still has the small plain values that
 * it had, and the bytes, lists and structs without another reference: most messages look like the one
 * before, and what has not changed need not be made again. The garbage collector does not track it.
 */
#define FAMILIES 4096 /* slots of the table; a power of two, several times the number of types */
#define KEPT 16
#define VALUES 64     /* slots and items below a kept object, at most; FAMILIAR bytes count as one */
#define FAMILIAR 64   /* bytes of a text that is kept */

/* Most numbers are of one digit, and those need no call. */
#if PY_VERSION_HEX >= 0x030C0000
#define IS_SMALL(value) PyUnstable_Long_IsCompact((PyLongObject *)(value))
#define SMALL(value) PyUnstable_Long_CompactValue((PyLongObject *)(value))
#else
#define IS_SMALL(value) ((size_t)(Py_SIZE(value) + 1) <= 2)
#define SMALL(value) (Py_SIZE(value) * (int64_t)((PyLongObject *)(value))->ob_digit[0])
#endif

struct family {
    PyTypeObject *type;
    Py_ssize_t slots;
    int kept;
    PyObject *objects[KEPT];
};

static struct family *families[FAMILIES];
static int families_known;
static PyObject *no_tags; /* () */

#define SLOTS_OF(object) ((PyObject **)((char *)(object) + sizeof(PyObject)))

/* Where the type is, or would be, in the table. */
static struct family **place_of_family(const PyTypeObject *type)
{
    size_t at = ((uintptr_t)type >> 4) & (FAMILIES - 1);
    while (families[at] != NULL && families[at]->type != type)
        at = (at + 1) & (FAMILIES - 1);
    return &families[at];
}

static void message_dealloc(PyObject *self);

/* A value that owns nothing: to drop it runs no code of anybody's. */
static inline int plain(PyObject *value)
{
    return PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
           value == Py_None || PyBool_Check(value) || PyFloat_CheckExact(value);
}

static int keeps_list(PyObject *list, int *room);
static int keeps_struct(PyObject *object, int *room);

/* Whether a value may stay in a dead message; what it takes of `room` is counted. Runs no code of
 * anybody's. Asked of every slot of every message, so it has to stand where it is asked.
 */
static inline Py_ALWAYS_INLINE int keeps(PyObject *value, int *room)
{
    if (PyLong_CheckExact(value))
        return IS_SMALL(value);
    if (PyUnicode_CheckExact(value))
        return PyUnicode_IS_COMPACT_ASCII(value) && PyUnicode_GET_LENGTH(value) <= FAMILIAR;
    if (PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) <= FAMILIAR)
        return 1;
    if (value == Py_None || value == no_tags || PyBool_Check(value))
        return 1;
    if (Py_REFCNT(value) != 1)
        return 0;
    if (PyBytes_CheckExact(value))
        return (*room -= (int)Py_MIN(PyBytes_GET_SIZE(value) / FAMILIAR, VALUES)) > 0;
    return PyList_CheckExact(value) ? keeps_list(value, room) : keeps_struct(value, room);
}

static int keeps_list(PyObject *list, int *room)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (count > *room)
        return 0;
    *room -= (int)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (item == NULL || PyList_CheckExact(item) || !keeps(item, room))
            return 0;
    }
    return 1;
}

static int keeps_struct(PyObject *object, int *room)
{
    PyTypeObject *type = Py_TYPE(object);
    struct family *family = type->tp_dealloc == message_dealloc ? *place_of_family(type) : NULL;
    if (family == NULL || family->slots > *room)
        return 0;
    *room -= (int)family->slots;
    PyObject **slots = SLOTS_OF(object);
    for (Py_ssize_t i = 0; i < family->slots; i++) {
        PyObject *value = slots[i];
        if (value == NULL || keeps(value, room))
            continue;
        if (!plain(value))
            return 0;
        slots[i] = NULL;
        Py_DECREF(value);
    }
    return 1;
}

static void message_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self), *known = type;
    struct family *family = *place_of_family(known);
    while (family == NULL) /* an object of a subclass: Python has taken care of what that added */
        family = *place_of_family(known = known->tp_base);
    PyObject_GC_UnTrack(self);
    PyObject **slots = SLOTS_OF(self);
    int again = known == type && family->kept < KEPT, room = VALUES;
    for (Py_ssize_t i = 0; i < family->slots; i++)
        if (slots[i] != NULL && !(again && keeps(slots[i], &room)))
            Py_CLEAR(slots[i]);
    if (again && family->kept < KEPT) { /* what was dropped may have come here meanwhile */
        family->objects[family->kept++] = self;
    } else {
        for (Py_ssize_t i = 0; i < family->slots; i++)
            Py_CLEAR(slots[i]);
        type->tp_free(self);
    }
    Py_DECREF(type);
}

/* The kind of a type of `slots` slots, from now on; NULL without an error where it has more. */
static struct family *family_for(PyTypeObject *type, Py_ssize_t slots)
{
    struct family **place = place_of_family(type);
    if (*place != NULL)
        return *place;
    if (type->tp_basicsize != (Py_ssize_t)(sizeof(PyObject) + slots * sizeof(PyObject *)) ||
        type->tp_itemsize || type->tp_dictoffset || type->tp_weaklistoffset || type->tp_del || type->tp_finalize ||
        !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || !PyType_IS_GC(type) ||
        type->tp_base->tp_dealloc != type->tp_dealloc || families_known >= FAMILIES / 2)
        return NULL;
    struct family *family = PyMem_Calloc(1, sizeof *family);
    if (family == NULL)
        return NULL;
    family->type = (PyTypeObject *)Py_NewRef(type);
    family->slots = slots;
    *place = family;
    families_known++;
    type->tp_dealloc = message_dealloc;
    return family;
}

/* An object whose slots are empty, or hold what `keeps` lets stay. */
static inline PyObject *object_of_family(struct family *family, PyTypeObject *type)
{
    if (family == NULL || family->kept == 0)
        return type->tp_alloc(type, 0);
    PyObject *made = family->objects[--family->kept];
    Py_INCREF(type);
#ifdef Py_REF_DEBUG
    _Py_NewReference(made);
#else
    Py_SET_REFCNT(made, 1);
#endif
    return made;
}
