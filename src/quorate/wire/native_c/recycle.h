/* Message objects that are used again: a node makes and drops the same few families all day.
 *
 * A type whose objects are nothing but slots gets a deallocator of its own, which keeps the last few
 * objects with empty slots; `new_object` takes them from there. Such an object is not tracked by the
 * garbage collector and holds no reference, not even to its type.
 */
#define FAMILIES 4096 /* slots of the table; a power of two, several times the number of types */
#define KEPT 16

struct family {
    PyTypeObject *type;
    Py_ssize_t slots;
    int kept;
    PyObject *objects[KEPT];
};

static struct family *families[FAMILIES];
static int families_known;

#define SLOTS_OF(object) ((PyObject **)((char *)(object) + sizeof(PyObject)))

/* Where the type is, or would be, in the table. */
static struct family **place_of_family(const PyTypeObject *type)
{
    size_t at = ((uintptr_t)type >> 4) & (FAMILIES - 1);
    while (families[at] != NULL && families[at]->type != type)
        at = (at + 1) & (FAMILIES - 1);
    return &families[at];
}

static void message_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self), *known = type;
    struct family *family = *place_of_family(known);
    while (family == NULL) /* an object of a subclass: Python has taken care of what that added */
        family = *place_of_family(known = known->tp_base);
    if (PyObject_GC_IsTracked(self))
        PyObject_GC_UnTrack(self);
    PyObject **slots = SLOTS_OF(self);
    for (Py_ssize_t i = 0; i < family->slots; i++)
        Py_CLEAR(slots[i]);
    if (known == type && family->kept < KEPT)
        family->objects[family->kept++] = self;
    else
        type->tp_free(self);
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
