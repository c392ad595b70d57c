/* Python's way into the compiled kernels: checks and unpacks arguments, calls, and wraps results.

   The build writes `entries.h` beside this file: for every kernel and signature a trampoline (C values from an array of
   64-bit slots to the kernel's own calling convention), a program that says how its arguments are unpacked, and one
   that says how its result is wrapped. Kernels follow Numba's convention: they return a status, write their result to
   a structure, and take arrays as (meminfo, parent, items, itemsize, data, shape..., strides...).

   Arguments are borrowed: an array passes with no meminfo, and the caller holds it during the call. A result that has
   none either is a view of an argument, and keeps that argument alive.

   Nothing is called before every argument fits: type, dtype, dimensions, layout, alignment, byte order, and that it can
   be written to where the kernel may write. Whatever fits no entry goes to the Python callable given for the kernel,
   which raises TypeError or has Numba compile it. Shapes are not looked at: they are the callers' part, as in Numba.

   Only the stable ABI of CPython 3.11 is used, and NumPy's own, so that one file serves all later versions. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- The part of Numba's runtime that kernels use: reference-counted blocks. The layout is Numba's. */

typedef struct MemInfo {
    atomic_size_t references;
    void (*destroy)(void *data, size_t size, void *info);
    void *info;
    void *data;
    size_t size;
    void *allocator;
} MemInfo;

void *NRT_Allocate(size_t size) { return malloc(size); }
void *NRT_Reallocate(void *data, size_t size) { return realloc(data, size); }
void NRT_Free(void *data) { free(data); }

MemInfo *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align) {
    if (align < sizeof(void *) || (align & (align - 1))) align = 16;
    if (size > SIZE_MAX - sizeof(MemInfo) - 2 * (size_t)align) return NULL;
    char *block = malloc(sizeof(MemInfo) + size + align);
    if (block == NULL) return NULL;
    MemInfo *held = (MemInfo *)block;
    uintptr_t begin = (uintptr_t)(block + sizeof(MemInfo));
    atomic_init(&held->references, 1);
    held->destroy = NULL;
    held->info = NULL;
    held->data = (void *)((begin + align - 1) & ~((uintptr_t)align - 1));
    held->size = size;
    held->allocator = NULL;
    return held;
}

MemInfo *NRT_MemInfo_alloc_safe_aligned(size_t size, uint32_t align) { return NRT_MemInfo_alloc_aligned(size, align); }
MemInfo *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }
MemInfo *NRT_MemInfo_alloc_safe(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

void NRT_MemInfo_call_dtor(MemInfo *held) {
    if (held->destroy != NULL) held->destroy(held->data, held->size, held->info);
    free(held);
}

/* Lists have their items apart, to make them longer. */
typedef void (*Destroy)(void *data, size_t size, void *info);

static void free_items(void *data, size_t size, void *each) {
    if (each != NULL) ((Destroy)each)(data, size, NULL);
    free(data);
}

MemInfo *NRT_MemInfo_new_varsize_dtor(size_t size, Destroy each) {
    MemInfo *held = NRT_MemInfo_alloc_aligned(0, 16);
    if (held == NULL) return NULL;
    held->data = malloc(size);
    held->size = size;
    held->destroy = free_items;
    held->info = (void *)each;
    if (held->data == NULL) {
        free(held);
        return NULL;
    }
    return held;
}

MemInfo *NRT_MemInfo_new_varsize(size_t size) { return NRT_MemInfo_new_varsize_dtor(size, NULL); }

void *NRT_MemInfo_varsize_realloc(MemInfo *held, size_t size) {
    void *data = realloc(held->data, size);
    if (data == NULL) return NULL;
    held->data = data;
    held->size = size;
    return data;
}

/* Kernels reshape only arrays that are contiguous. */
int numba_attempt_nocopy_reshape(npy_intp dimensions, const npy_intp *shape, const npy_intp *strides,
                                 npy_intp new_dimensions, const npy_intp *new_shape, npy_intp *new_strides,
                                 npy_intp itemsize, int is_f_order) {
    npy_intp step = itemsize;
    for (npy_intp axis = dimensions - 1; axis >= 0; axis--) {
        if (shape[axis] > 1 && strides[axis] != step) return 0;
        step *= shape[axis];
    }
    if (is_f_order) return 0;
    step = itemsize;
    for (npy_intp axis = new_dimensions - 1; axis >= 0; axis--) {
        new_strides[axis] = step;
        step *= new_shape[axis];
    }
    return 1;
}

static void release_block(PyObject *capsule) {
    MemInfo *held = PyCapsule_GetPointer(capsule, "tocsin.block");
    if (held != NULL && atomic_fetch_sub(&held->references, 1) == 1) NRT_MemInfo_call_dtor(held);
}

/* ---- Programs */

enum { OP_END, OP_ARRAY, OP_INT, OP_FLOAT, OP_BOOL, OP_TUPLE, OP_NONE };
enum { LAYOUT_ANY, LAYOUT_C, LAYOUT_F };

/* Arguments:  OP_ARRAY kind dimensions layout writable | OP_INT bytes | OP_FLOAT bytes | OP_BOOL | OP_NONE
               OP_TUPLE items class (-1: a plain tuple), then the items
   Results:    OP_ARRAY offset kind dimensions | OP_INT offset bytes | OP_FLOAT offset bytes | OP_BOOL offset
               OP_NONE offset | OP_TUPLE items class, then the items */

typedef struct {
    const char *types;
    int (*call)(const uint64_t *slots, void *result, void **raised);
    const int16_t *arguments;
    const int16_t *result;
    int16_t argument_count;
    int16_t result_bytes;
    int8_t releases_lock;
} Entry;

typedef struct {
    const char *name;       /* in the room of kernels */
    const char *short_name; /* in its module */
    int first, count;       /* its entries */
} Kernel;

typedef union {
    uint64_t word;
    int64_t whole;
    double real;
    void *pointer;
} Slot;

#include "entries.h"

static PyObject *classes[CLASS_COUNT + 1]; /* the named tuples, each NULL until its module has been imported */
static PyObject *numpy_int64, *numpy_int32, *numpy_bool;

static PyMethodDef kernel_methods[KERNEL_COUNT];

static const int array_kinds[][2] = {
    /* in the order of KINDS in entries.py; the NumPy type numbers that each may have */
    {NPY_BOOL, NPY_BOOL},     {NPY_BYTE, NPY_BYTE},     {NPY_UBYTE, NPY_UBYTE},    {NPY_SHORT, NPY_SHORT},
    {NPY_USHORT, NPY_USHORT}, {NPY_INT, NPY_INT},       {NPY_UINT, NPY_UINT},      {NPY_LONG, NPY_LONGLONG},
    {NPY_ULONG, NPY_ULONGLONG}, {NPY_FLOAT, NPY_FLOAT}, {NPY_DOUBLE, NPY_DOUBLE},
};

/* Return a named tuple, borrowed; NULL, without an error, if nobody has imported its module: then nobody has one. */
static PyObject *class_of(int number) {
    if (classes[number] == NULL) {
        const char *name = strchr(class_names[number], ':') + 1;
        PyObject *module_name = PyUnicode_FromStringAndSize(class_names[number], name - class_names[number] - 1);
        PyObject *module = module_name == NULL ? NULL : PyImport_GetModule(module_name);
        if (module != NULL) classes[number] = PyObject_GetAttrString(module, name);
        PyErr_Clear();
        Py_XDECREF(module);
        Py_XDECREF(module_name);
    }
    return classes[number];
}

typedef struct {
    uint64_t slots[MOST_SLOTS];
    int used;
    PyArrayObject *arrays[MOST_ARRAYS];
    int array_count;
} Unpacked;

static int is_of_kind(PyArrayObject *array, int kind) {
    int type = PyArray_TYPE(array);
    return (type == array_kinds[kind][0] || type == array_kinds[kind][1]) && PyArray_ISNOTSWAPPED(array);
}

static int unpack_array(PyObject *object, const int16_t *program, Unpacked *into) {
    if (!PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    int dimensions = program[2], flags = PyArray_FLAGS(array);
    if (PyArray_NDIM(array) != dimensions || !is_of_kind(array, program[1])) return 0;
    int needed = NPY_ARRAY_ALIGNED | (program[4] ? NPY_ARRAY_WRITEABLE : 0);
    if (program[3] == LAYOUT_C) needed |= NPY_ARRAY_C_CONTIGUOUS;
    if (program[3] == LAYOUT_F) needed |= NPY_ARRAY_F_CONTIGUOUS;
    if ((flags & needed) != needed) return 0;
    uint64_t *slot = into->slots + into->used;
    *slot++ = 0;
    *slot++ = (uint64_t)(uintptr_t)object;
    *slot++ = (uint64_t)PyArray_SIZE(array);
    *slot++ = (uint64_t)PyArray_ITEMSIZE(array);
    *slot++ = (uint64_t)(uintptr_t)PyArray_DATA(array);
    for (int axis = 0; axis < dimensions; axis++) *slot++ = (uint64_t)PyArray_DIM(array, axis);
    for (int axis = 0; axis < dimensions; axis++) *slot++ = (uint64_t)PyArray_STRIDE(array, axis);
    into->used = (int)(slot - into->slots);
    into->arrays[into->array_count++] = array;
    return 1;
}

/* As for Numba, an integer of Python or numpy.int64 has 64 bits, and only numpy.int32 has 32. */
static int unpack_int(PyObject *object, int bytes, Unpacked *into) {
    int is_numpy = (PyObject *)Py_TYPE(object) == (bytes == 8 ? numpy_int64 : numpy_int32);
    if (!is_numpy && !(bytes == 8 && PyLong_CheckExact(object))) return 0;
    PyObject *number = is_numpy ? PyNumber_Index(object) : object;
    if (number == NULL) {
        PyErr_Clear();
        return 0;
    }
    long long value = PyLong_AsLongLong(number);
    if (is_numpy) Py_DECREF(number);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    into->slots[into->used++] = (uint64_t)value;
    return 1;
}

static int unpack_bool(PyObject *object, Unpacked *into) {
    if (object != Py_True && object != Py_False && (PyObject *)Py_TYPE(object) != numpy_bool) return 0;
    into->slots[into->used++] = PyObject_IsTrue(object) == 1;
    return 1;
}

/* Return whether an object fits the program, which is left behind the part that describes it. */
static int unpack(PyObject *object, const int16_t **program, Unpacked *into) {
    const int16_t *at = *program;
    switch (at[0]) {
    case OP_ARRAY:
        *program = at + 5;
        return unpack_array(object, at, into);
    case OP_INT:
        *program = at + 2;
        return unpack_int(object, at[1], into);
    case OP_FLOAT:
        *program = at + 2;
        if (!PyFloat_Check(object)) return 0;
        into->slots[into->used++] = (Slot){.real = PyFloat_AsDouble(object)}.word;
        return 1;
    case OP_BOOL:
        *program = at + 1;
        return unpack_bool(object, into);
    case OP_NONE:
        *program = at + 1;
        into->slots[into->used++] = 0;
        return object == Py_None;
    case OP_TUPLE: {
        int items = at[1], class = at[2];
        *program = at + 3;
        if (class < 0 ? !PyTuple_CheckExact(object) : (PyObject *)Py_TYPE(object) != class_of(class)) return 0;
        if (PyTuple_Size(object) != items) return 0;
        for (int item = 0; item < items; item++)
            if (!unpack(PyTuple_GetItem(object, item), program, into)) return 0;
        return 1;
    }
    }
    return 0;
}

/* ---- Results */

typedef struct {
    MemInfo *block;
    PyObject *parent;
    int64_t items;
    int64_t itemsize;
    char *data;
    int64_t shape_and_strides[];
} ArrayResult;

static int is_whole(const ArrayResult *found, PyArrayObject *array, const int16_t *program) {
    int dimensions = program[3];
    if (PyArray_DATA(array) != found->data || PyArray_NDIM(array) != dimensions || !is_of_kind(array, program[2]))
        return 0;
    for (int axis = 0; axis < dimensions; axis++)
        if (PyArray_DIM(array, axis) != found->shape_and_strides[axis] ||
            PyArray_STRIDE(array, axis) != found->shape_and_strides[dimensions + axis])
            return 0;
    return 1;
}

/* Return a new reference to the argument that an array without memory of its own is a part of. */
static PyObject *owner_of(const ArrayResult *found, const Unpacked *given) {
    for (int number = 0; number < given->array_count; number++) {
        PyArrayObject *array = given->arrays[number];
        char *begin = PyArray_DATA(array);
        if ((PyObject *)array == found->parent ||
            (found->parent == NULL && found->data >= begin && found->data <= begin + PyArray_NBYTES(array))) {
            Py_INCREF((PyObject *)array);
            return (PyObject *)array;
        }
    }
    PyErr_SetString(PyExc_SystemError, "a kernel returned an array that nobody owns");
    return NULL;
}

static PyObject *wrap_array(const ArrayResult *found, const int16_t *program, const Unpacked *given) {
    int dimensions = program[3];
    PyObject *owner = found->block != NULL ? PyCapsule_New(found->block, "tocsin.block", release_block)
                                           : owner_of(found, given);
    if (owner == NULL) return NULL;
    if (found->block == NULL && is_whole(found, (PyArrayObject *)owner, program)) return owner;
    npy_intp shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    for (int axis = 0; axis < dimensions; axis++) {
        shape[axis] = found->shape_and_strides[axis];
        strides[axis] = found->shape_and_strides[dimensions + axis];
    }
    PyArray_Descr *kind = PyArray_DescrFromType(array_kinds[program[2]][0]);
    PyObject *array = kind == NULL ? NULL
        : PyArray_NewFromDescr(&PyArray_Type, kind, dimensions, shape, strides, found->data, NPY_ARRAY_WRITEABLE, NULL);
    if (array == NULL) {
        Py_DECREF(owner); /* which frees the block */
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) { /* which has taken the owner in any case */
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

static PyObject *wrap(const char *result, const int16_t **program, const Unpacked *given) {
    const int16_t *at = *program;
    const char *place = result + at[1];
    switch (at[0]) {
    case OP_ARRAY:
        *program = at + 4;
        return wrap_array((const ArrayResult *)place, at, given);
    case OP_INT:
        *program = at + 3;
        return PyLong_FromLongLong(at[2] == 8 ? *(const int64_t *)place : *(const int32_t *)place);
    case OP_FLOAT:
        *program = at + 3;
        return PyFloat_FromDouble(*(const double *)place);
    case OP_BOOL:
        *program = at + 2;
        return PyBool_FromLong(*(const uint8_t *)place & 1);
    case OP_NONE:
        *program = at + 2;
        Py_RETURN_NONE;
    case OP_TUPLE: {
        int items = at[1], class = at[2];
        *program = at + 3;
        PyObject *tuple = PyTuple_New(items);
        int failed = tuple == NULL;
        for (int item = 0; item < items; item++) { /* all of them, so that no block is lost */
            PyObject *each = wrap(result, program, given);
            if (failed || each == NULL) {
                failed = 1;
                Py_XDECREF(each);
            } else {
                PyTuple_SetItem(tuple, item, each);
            }
        }
        if (failed) {
            Py_XDECREF(tuple);
            return NULL;
        }
        if (class < 0) return tuple;
        PyObject *named = NULL;
        if (class_of(class) != NULL) {
            named = PyObject_Call(classes[class], tuple, NULL);
        } else {
            PyErr_Format(PyExc_SystemError, "%s is not imported", class_names[class]);
        }
        Py_DECREF(tuple);
        return named;
    }
    }
    PyErr_SetString(PyExc_SystemError, "damaged result program");
    return NULL;
}

/* What a kernel raises is a pickled (class, arguments, place), written into this module by the compiler. Only Numba can
   read what is composed while the kernel runs (`composed` is not 0): shapes that do not fit each other. */
static void raise_error(int status, void *raised) {
    struct Raised { const char *pickled; int32_t size; void *values; void *unwrap; int32_t composed; };
    const struct Raised *error = raised;
    if (status <= 0 || error == NULL) {
        PyErr_Format(PyExc_SystemError, "a kernel failed with status %d", status);
        return;
    }
    if (error->composed) {
        PyErr_SetString(PyExc_ValueError, "the shapes of arrays do not fit each other");
        NRT_Free(error->values);
        NRT_Free(raised);
        return;
    }
    PyObject *pickle = PyImport_ImportModule("pickle");
    PyObject *found = pickle == NULL ? NULL
        : PyObject_CallMethod(pickle, "loads", "y#", error->pickled, (Py_ssize_t)error->size);
    Py_XDECREF(pickle);
    if (found != NULL && PyTuple_Check(found) && PyTuple_Size(found) >= 2) {
        PyObject *class = PyTuple_GetItem(found, 0), *arguments = PyTuple_GetItem(found, 1);
        PyObject *exception = PyObject_CallObject(class, PyTuple_Check(arguments) ? arguments : NULL);
        if (exception != NULL) {
            PyErr_SetObject(class, exception);
            Py_DECREF(exception);
        }
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_SystemError, "a kernel failed and did not say why");
    }
    Py_XDECREF(found);
}

/* ---- Calls */

static PyObject *run_entry(const Entry *entry, const Unpacked *given) {
    uint64_t result[MOST_RESULT / 8];
    void *raised = NULL;
    int status;
    memset(result, 0, (size_t)entry->result_bytes);
    if (entry->releases_lock) {
        PyThreadState *state = PyEval_SaveThread();
        status = entry->call(given->slots, result, &raised);
        PyEval_RestoreThread(state);
    } else {
        status = entry->call(given->slots, result, &raised);
    }
    if (status == -2) Py_RETURN_NONE;
    if (status != 0) {
        raise_error(status, raised);
        return NULL;
    }
    const int16_t *program = entry->result;
    return wrap((const char *)result, &program, given);
}

/* ``self`` is (number of the kernel, fallback). */
static PyObject *call_kernel(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    const Kernel *kernel = &all_kernels[PyLong_AsLong(PyTuple_GetItem(self, 0))];
    Unpacked given;
    for (const Entry *entry = &all_entries[kernel->first]; entry < &all_entries[kernel->first + kernel->count]; entry++) {
        if (entry->argument_count != count) continue;
        const int16_t *program = entry->arguments;
        given.used = given.array_count = 0;
        int fits = 1;
        for (Py_ssize_t each = 0; fits && each < count; each++) fits = unpack(arguments[each], &program, &given);
        if (fits) return run_entry(entry, &given);
    }
    PyObject *tuple = PyTuple_New(count);
    if (tuple == NULL) return NULL;
    for (Py_ssize_t each = 0; each < count; each++) {
        Py_INCREF(arguments[each]);
        PyTuple_SetItem(tuple, each, arguments[each]);
    }
    PyObject *answer = PyObject_CallObject(PyTuple_GetItem(self, 1), tuple);
    Py_DECREF(tuple);
    return answer;
}

static int compare_names(const void *name, const void *kernel) { return strcmp(name, ((const Kernel *)kernel)->name); }

static PyObject *bind(PyObject *module, PyObject *arguments) {
    const char *name;
    PyObject *fallback;
    if (!PyArg_ParseTuple(arguments, "sO:bind", &name, &fallback)) return NULL;
    const Kernel *found = bsearch(name, all_kernels, KERNEL_COUNT, sizeof(Kernel), compare_names);
    if (found == NULL) Py_RETURN_NONE;
    long number = (long)(found - all_kernels);
    PyObject *self = Py_BuildValue("(lO)", number, fallback);
    if (self == NULL) return NULL;
    kernel_methods[number] =
        (PyMethodDef){found->short_name, (PyCFunction)(void (*)(void))call_kernel, METH_FASTCALL, NULL};
    PyObject *function = PyCFunction_NewEx(&kernel_methods[number], self, NULL);
    Py_DECREF(self);
    return function;
}

static PyObject *entries(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    for (long number = 0; list != NULL && number < KERNEL_COUNT; number++) {
        const Kernel *kernel = &all_kernels[number];
        for (int each = kernel->first; list != NULL && each < kernel->first + kernel->count; each++) {
            PyObject *pair = Py_BuildValue("(ss)", kernel->name, all_entries[each].types);
            if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
            Py_XDECREF(pair);
        }
    }
    return list;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, "bind(kernel, fallback): the native kernel of that name, or None"},
    {"entries", entries, METH_NOARGS, "entries(): every (kernel, types of the arguments) in here"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_native(void) {
    import_array();
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) return NULL;
    numpy_int64 = PyObject_GetAttrString(numpy, "int64");
    numpy_int32 = PyObject_GetAttrString(numpy, "int32");
    numpy_bool = PyObject_GetAttrString(numpy, "bool_");
    Py_DECREF(numpy);
    if (numpy_int64 == NULL || numpy_int32 == NULL || numpy_bool == NULL) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddStringConstant(module, "identity", identity) < 0) Py_CLEAR(module);
    return module;
}
