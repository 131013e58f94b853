//! What a session and its asker tell each other: a segment of dynamic shared memory (dsm.c), which needs no preloaded library.

#![expect(unsafe_code, reason = "the segment is the server's memory, and shared")]

use std::hash::{DefaultHasher, Hash, Hasher};

use pgrx::pg_guard;
use pgrx::pg_sys;

use super::{Overrides, Running};
use crate::found::{Asked, SharedAnswer};
use crate::server;

#[repr(C)]
struct Content {
    /// That of [`layout`].
    layout: u64,
    overrides: Overrides,
    /// Written by the asker; `None` until then.
    answer: Option<SharedAnswer>,
}

/// Identifies the version of the library: where the session and the asker have loaded two, neither reads what the other has written.
fn layout() -> u64 {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), size_of::<Content>()).hash(&mut hasher);
    hasher.finish()
}

/// A segment that this process is attached to.
pub struct Message {
    segment: *mut pg_sys::dsm_segment,
    content: *mut Content,
}

impl Message {
    /// A new segment with the question of a session.
    pub fn new(overrides: Overrides) -> Self {
        let content = Content { layout: layout(), overrides, answer: None };
        // SAFETY: a new segment with room for the content, at an address that is aligned to a page.
        unsafe {
            let segment = pg_sys::dsm_create(size_of::<Content>(), 0);
            let message = Self { segment, content: pg_sys::dsm_segment_address(segment).cast() };
            message.content.write(content);
            message
        }
    }

    /// The segment of that handle; `None` if the session is gone, or has another version of the library.
    pub fn of(handle: pg_sys::dsm_handle) -> Option<Self> {
        // SAFETY: the handle is that of `new`; the layout is compared before anything else is read.
        unsafe {
            let segment = pg_sys::dsm_attach(handle);
            if segment.is_null() {
                return None;
            }
            let message = Self { segment, content: pg_sys::dsm_segment_address(segment).cast() };
            ((*message.content).layout == layout()).then_some(message)
        }
    }

    /// Ends the asker when this process lets go of the segment, also where it ends by a FATAL error. Where the postmaster is
    /// process 1 the asker ends by itself: what it could not collect would become the postmaster's.
    pub fn ends(&self, asker: &Running) {
        if server::postmaster_pid() != 1 {
            // SAFETY: the handle of the asker lives as long as this process.
            unsafe { pg_sys::on_dsm_detach(self.segment, Some(end_asker), pg_sys::Datum::from(asker.0)) };
        }
    }

    /// By which an asker finds the segment.
    pub fn handle(&self) -> pg_sys::dsm_handle {
        // SAFETY: a segment that this process is attached to.
        unsafe { pg_sys::dsm_segment_handle(self.segment) }
    }

    /// The question.
    pub fn overrides(&self) -> Overrides {
        // SAFETY: written before the asker was started.
        unsafe { (*self.content).overrides }
    }

    /// Writes the answer; in the asker.
    pub fn set_answer(&self, asked: &Asked) {
        // SAFETY: the session reads it after this process has ended.
        unsafe {
            (*self.content).answer = Some(SharedAnswer::of(0, asked));
        }
    }

    /// The answer, after the asker has ended; `None` if it has written none.
    pub fn answer(&self) -> Option<Asked> {
        // SAFETY: nobody else has the segment any more.
        unsafe { (*self.content).answer.as_ref().map(SharedAnswer::asked) }
    }
}

#[pg_guard]
extern "C-unwind" fn end_asker(_segment: *mut pg_sys::dsm_segment, asker: pg_sys::Datum) {
    // SAFETY: of an asker that has ended the slot has another generation, which the server compares.
    unsafe {
        pg_sys::TerminateBackgroundWorker(asker.cast_mut_ptr());
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: attached until now.
        unsafe {
            pg_sys::dsm_detach(self.segment);
        }
    }
}
