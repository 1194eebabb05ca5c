"""The C of hull, scan and tables as a library: functions for ctypes, allocations that can fail."""

from __future__ import annotations

import ctypes

import pytest

from executor.native.build import load
from executor.native.sources import RUNTIME, runtime

COUNTED = "#define realloc allowed_realloc\n"
WRAPPERS = """
#undef realloc
static int64_t allowed = -1; /* how many allocations succeed; any number if negative */
void allow(int64_t n) { allowed = n; }
void *allowed_realloc(void *block, size_t size)
{
    if (allowed == 0)
        return NULL;
    allowed -= allowed > 0;
    return realloc(block, size);
}

typedef struct { status status, scanning; hull hull; scan scan; table table; } both;

both *both_new(int mean)
{
    both *b = calloc(1, sizeof *b);
    hull_start(&b->hull, &b->status, mean, 1, 1);
    b->scanning.scanning = 1;
    scan_start(&b->scan, &b->scanning, mean, 1, 1);
    table_start(&b->table, &b->status, 1);
    return b;
}
int64_t both_free(both *b) /* bytes that are still counted: 0 */
{
    hull_clear(&b->hull);
    scan_clear(&b->scan);
    table_clear(&b->table);
    int64_t left = b->status.bytes + b->scanning.bytes;
    free(b);
    return left;
}
int both_error(both *b) { return b->status.error + b->scanning.error; }
void hull_add(both *b, double x, double y, int64_t weight, double value)
{
    b->hull.fresh[0].i = weight, b->hull.fresh[1].d = value;
    hull_insert(&b->hull, x, y, b->hull.fresh);
    b->scan.fresh[0].i = weight, b->scan.fresh[1].d = value;
    scan_insert(&b->scan, x, y, b->scan.fresh);
}
static double value_of(both *b, const cell *r)
{
    return b->hull.mean ? r[1].d / (double)r[0].i : r[1].d;
}
double hull_ask(both *b, double x, double y) { return value_of(b, hull_query(&b->hull, x, y)); }
double scan_ask(both *b, double x, double y) { return value_of(b, scan_query(&b->scan, x, y)); }
int64_t hull_kept(both *b) { return b->hull.upper.n_vertices; }
void table_add(both *b, double x, double y, int64_t position, double value)
{
    b->table.fresh[0].i = position, b->table.fresh[1].d = value;
    table_insert(&b->table, x, y);
}
double table_ask(both *b, double e) { return table_query(&b->table, e)[1].d; }
int64_t table_find(both *b, int64_t k) /* the position of a key that is there, or -1 */
{
    const cell *record = table_hit(&b->table, k);
    return record ? record[0].i : -1;
}
void table_place(both *b, int64_t k, int64_t position, double value)
{
    cell *record = table_put(&b->table, k);
    if (record)
        record[0].i = position, record[1].d = value;
}
int table_is_general(both *b) { return b->table.general; }
few *few_new(const double *keys, int n, int mean)
{
    few *f = calloc(1, sizeof *f);
    static status s;
    s = (status){0};
    few_start(f, &s, mean, 1, keys, n);
    return f;
}
void few_free(few *f) { few_clear(f), free(f); }
void few_add(few *f, int key, int64_t weight, double value)
{
    few_fresh(f)[0].i = weight, few_fresh(f)[1].d = value;
    few_insert(f, key);
}
double few_ask(few *f, double x, double y)
{
    status s = {0};
    const cell *r = few_query(f, &s, x, y);
    return f->mean ? r[1].d / (double)r[0].i : r[1].d;
}
int sign(const double *factors, int n) { return sign_of_products(factors, n); }
int64_t ask_position(double x, double y, int64_t p)
{
    status s = {0};
    return nearest_quotient(&s, x, y, p);
}
"""


def hull_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The library, with engines kept elsewhere than those of other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSPUTER_CACHE", str(tmp_path_factory.getbasetemp() / "native"))
        lib = load(COUNTED + runtime(*RUNTIME, "scan.h") + WRAPPERS, lambda line: None, "-O1")
    number, handle, count = ctypes.c_double, ctypes.c_void_p, ctypes.c_int64
    lib.both_new.argtypes, lib.both_new.restype = [ctypes.c_int], handle
    lib.both_free.argtypes, lib.both_free.restype = [handle], count
    lib.both_error.argtypes = [handle]
    for name in ("hull_add", "table_add"):
        getattr(lib, name).argtypes = [handle, number, number, count, number]
        getattr(lib, name).restype = None
    for name in ("hull_ask", "scan_ask"):
        getattr(lib, name).argtypes = [handle, number, number]
        getattr(lib, name).restype = number
    lib.allow.argtypes, lib.allow.restype = [count], None
    lib.hull_kept.argtypes, lib.hull_kept.restype = [handle], count
    lib.table_ask.argtypes, lib.table_ask.restype = [handle, number], number
    lib.table_place.argtypes = [handle, count, count, number]
    lib.table_place.restype = None
    lib.table_find.argtypes, lib.table_find.restype = [handle, count], count
    lib.table_is_general.argtypes = [handle]
    numbers_of = ctypes.POINTER(number)
    lib.few_new.argtypes, lib.few_new.restype = [numbers_of, ctypes.c_int, ctypes.c_int], handle
    lib.few_free.argtypes, lib.few_free.restype = [handle], None
    lib.few_add.argtypes, lib.few_add.restype = [handle, ctypes.c_int, count, number], None
    lib.few_ask.argtypes, lib.few_ask.restype = [handle, number, number], number
    lib.sign.argtypes = [ctypes.POINTER(number), ctypes.c_int]
    lib.ask_position.argtypes, lib.ask_position.restype = [number, number, count], count
    return lib
