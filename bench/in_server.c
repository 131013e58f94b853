/*
 * What the bench runs inside the server.
 *
 * one_row, at_once: set-returning functions that return one row of NULLs, for the price of the call itself: value by
 * value, with the columns of their SQL declaration, or in a tuplestore, with those that the caller expects.
 * touch_shared_buffers: faults the whole buffer pool in, without a file of that size to read.
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/tuplestore.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(one_row);
PG_FUNCTION_INFO_V1(at_once);
PG_FUNCTION_INFO_V1(touch_shared_buffers);

static HeapTuple
row_of_nulls(TupleDesc descriptor)
{
    int         columns = descriptor->natts;
    Datum      *values = palloc0(columns * sizeof(Datum));
    bool       *nulls = palloc(columns * sizeof(bool));

    memset(nulls, true, columns * sizeof(bool));
    return heap_form_tuple(descriptor, values, nulls);
}

Datum
one_row(PG_FUNCTION_ARGS)
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
        MemoryContextSwitchTo(caller);
    }

    context = SRF_PERCALL_SETUP();
    if (context->call_cntr == 0)
        SRF_RETURN_NEXT(context, HeapTupleGetDatum(row_of_nulls(context->tuple_desc)));
    SRF_RETURN_DONE(context);
}

Datum
at_once(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;

    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    tuplestore_puttuple(set->setResult, row_of_nulls(set->setDesc));
    return (Datum) 0;
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
