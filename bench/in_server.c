/*
 * What the bench runs inside the server.
 *
 * no_row, one_row: set-returning functions that do nothing, for the price of the call itself, value by value. Their
 * columns are whatever the SQL declaration says; every value is NULL.
 * touch_shared_buffers: faults the whole buffer pool in, without a file of that size to read.
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(no_row);
PG_FUNCTION_INFO_V1(one_row);
PG_FUNCTION_INFO_V1(touch_shared_buffers);

static Datum
rows(FunctionCallInfo fcinfo, uint64 count)
{
    FuncCallContext *context;

    if (SRF_IS_FIRSTCALL())
    {
        MemoryContext caller;
        TupleDesc   descriptor;

        context = SRF_FIRSTCALL_INIT();
        caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
        if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
            elog(ERROR, "must be declared to return a table of several columns");
        context->tuple_desc = BlessTupleDesc(descriptor);
        context->max_calls = count;
        MemoryContextSwitchTo(caller);
    }

    context = SRF_PERCALL_SETUP();
    if (context->call_cntr < context->max_calls)
    {
        int         columns = context->tuple_desc->natts;
        Datum      *values = palloc0(columns * sizeof(Datum));
        bool       *nulls = palloc(columns * sizeof(bool));

        memset(nulls, true, columns * sizeof(bool));
        SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
    }
    SRF_RETURN_DONE(context);
}

Datum
no_row(PG_FUNCTION_ARGS)
{
    return rows(fcinfo, 0);
}

Datum
one_row(PG_FUNCTION_ARGS)
{
    return rows(fcinfo, 1);
}

Datum
touch_shared_buffers(PG_FUNCTION_ARGS)
{
    const volatile char *pool = BufferBlocks;
    size_t      size = (size_t) NBuffers * BLCKSZ;
    size_t      page = sysconf(_SC_PAGESIZE);

    for (size_t offset = 0; offset < size; offset += page)
    {
        (void) pool[offset];
        CHECK_FOR_INTERRUPTS();
    }
    PG_RETURN_VOID();
}
