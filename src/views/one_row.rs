//! A row that a function returns at once, in a tuplestore with the columns that its caller expects (funcapi.h, "Materialize
//! mode").
//!
//! pgrx's iterator reads these columns from the catalogs at each call, and is called again for the end. Of the instructions of
//! `hugepage_status` that was more than a quarter.

use pgrx::IntoHeapTuple;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys;

use crate::majors;

/// The row. It is named as pgrx's iterator is, because pgrx's macro knows by that name that there are columns.
pub struct TableIterator<Row>(Row);

impl<Row> TableIterator<Row> {
    /// Exactly this row.
    pub fn once(row: Row) -> Self {
        Self(row)
    }
}

// SAFETY: the server looks at the tuplestore, and not at what the function returns.
#[allow(unsafe_code)]
unsafe impl<Row: IntoHeapTuple> BoxRet for TableIterator<Row> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: the call goes on, as the caller promises. The first function puts the tuplestore and its columns
        // where they are expected, or fails.
        unsafe {
            let call = fcinfo.as_mut_ptr();
            majors::init_materialized(call);
            let set = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            pg_sys::tuplestore_puttuple((*set).setResult, self.0.into_heap_tuple((*set).setDesc));
        }
        fcinfo.return_null()
    }
}
