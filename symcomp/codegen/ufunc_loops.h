/* Loops of NumPy's ufuncs around C functions. ufunc_module.py writes a line for each loop after
   this. */

#define KINDS 3
#define MOST_ARGUMENTS 8

struct ufunc {
    const char *name;
    int arguments;
    PyUFuncGenericFunction loops[KINDS];
};

#define LOOP_HEAD(name) \
    static void name(char **data, const npy_intp *counts, const npy_intp *steps, void *unused)
#define ELEMENT(stored, k) (*(stored *)(data[k] + i * steps[k]))
#define EACH for (npy_intp i = 0; i < counts[0]; i++)

/* z is an expression of x, y, w, v, u, t, s and r: numbers of type `number`, kept in arrays of `stored`. */
#define LOOP_OF_1(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0); \
            ELEMENT(stored, 1) = z; \
        } \
    }
#define LOOP_OF_2(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0), y = ELEMENT(stored, 1); \
            ELEMENT(stored, 2) = z; \
        } \
    }
#define LOOP_OF_3(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0), y = ELEMENT(stored, 1), w = ELEMENT(stored, 2); \
            ELEMENT(stored, 3) = z; \
        } \
    }
#define LOOP_OF_4(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0), y = ELEMENT(stored, 1), w = ELEMENT(stored, 2); \
            number v = ELEMENT(stored, 3); \
            ELEMENT(stored, 4) = z; \
        } \
    }
#define LOOP_OF_5(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0), y = ELEMENT(stored, 1), w = ELEMENT(stored, 2); \
            number v = ELEMENT(stored, 3), u = ELEMENT(stored, 4); \
            ELEMENT(stored, 5) = z; \
        } \
    }
#define LOOP_OF_8(name, stored, number, z) \
    LOOP_HEAD(name) \
    { \
        EACH { \
            number x = ELEMENT(stored, 0), y = ELEMENT(stored, 1), w = ELEMENT(stored, 2); \
            number v = ELEMENT(stored, 3), u = ELEMENT(stored, 4), t = ELEMENT(stored, 5); \
            number s = ELEMENT(stored, 6), r = ELEMENT(stored, 7); \
            ELEMENT(stored, 8) = z; \
        } \
    }
