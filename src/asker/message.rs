//! What a session and its asker tell each other: a segment of dynamic shared memory (dsm.c), which needs no preloaded library.

use pgrx::pg_guard;
use pgrx::pg_sys;

use super::{Overrides, Running};
use crate::found::{Asked, SharedAnswer};
use crate::server;

/// The session and the asker may have loaded two versions of the library: then neither reads what the other has written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    version: [u8; 24],
    size: usize,
}

impl Layout {
    const OWN: Self = {
        let (name, mut version, mut at) = (env!("CARGO_PKG_VERSION").as_bytes(), [0; 24], 0);
        while at < name.len() {
            version[at] = name[at];
            at += 1;
        }
        Self { version, size: size_of::<Content>() }
    };
}

#[repr(C)]
struct Content {
    layout: Layout,
    overrides: Overrides,
    /// Written by the asker; `None` until then.
    answer: Option<SharedAnswer>,
}

/// A segment that this process is attached to.
pub struct Message {
    segment: *mut pg_sys::dsm_segment,
    content: *mut Content,
}

impl Message {
    /// A new segment with the question of a session.
    #[allow(unsafe_code)]
    pub fn new(overrides: Overrides) -> Self {
        let content = Content { layout: Layout::OWN, overrides, answer: None };
        // SAFETY: a new segment with room for the content, at an address that is aligned to a page.
        unsafe {
            let segment = pg_sys::dsm_create(size_of::<Content>(), 0);
            let message = Self { segment, content: pg_sys::dsm_segment_address(segment).cast() };
            message.content.write(content);
            message
        }
    }

    /// The segment of that handle; `None` if the session is gone, or has another version of the library.
    #[allow(unsafe_code)]
    pub fn of(handle: pg_sys::dsm_handle) -> Option<Self> {
        // SAFETY: the handle is that of `new`; the layout is compared before anything else is read.
        unsafe {
            let segment = pg_sys::dsm_attach(handle);
            if segment.is_null() {
                return None;
            }
            let message = Self { segment, content: pg_sys::dsm_segment_address(segment).cast() };
            ((*message.content).layout == Layout::OWN).then_some(message)
        }
    }

    /// Ends the asker when this process lets go of the segment, also where it ends by a FATAL error. Where the postmaster is
    /// process 1 the asker ends by itself: what it could not collect would become the postmaster's.
    #[allow(unsafe_code)]
    pub fn ends(&self, asker: &Running) {
        if server::postmaster_pid() != 1 {
            // SAFETY: the handle of the asker lives as long as this process.
            unsafe { pg_sys::on_dsm_detach(self.segment, Some(end_asker), pg_sys::Datum::from(asker.0)) };
        }
    }

    /// By which an asker finds the segment.
    #[allow(unsafe_code)]
    pub fn handle(&self) -> pg_sys::dsm_handle {
        // SAFETY: a segment that this process is attached to.
        unsafe { pg_sys::dsm_segment_handle(self.segment) }
    }

    /// The question.
    #[allow(unsafe_code)]
    pub fn overrides(&self) -> Overrides {
        // SAFETY: written before the asker was started.
        unsafe { (*self.content).overrides }
    }

    /// Writes the answer; in the asker.
    #[allow(unsafe_code)]
    pub fn set_answer(&self, asked: &Asked) {
        // SAFETY: the session reads it after this process has ended.
        unsafe {
            (*self.content).answer = Some(SharedAnswer::of(0, asked));
        }
    }

    /// The answer, after the asker has ended; `None` if it has written none.
    #[allow(unsafe_code)]
    pub fn answer(&self) -> Option<Asked> {
        // SAFETY: nobody else has the segment any more.
        unsafe { (*self.content).answer.as_ref().map(SharedAnswer::asked) }
    }
}

#[pg_guard]
extern "C-unwind" fn end_asker(_segment: *mut pg_sys::dsm_segment, asker: pg_sys::Datum) {
    // SAFETY: of an asker that has ended the slot has another generation, which the server compares.
    #[allow(unsafe_code)]
    unsafe {
        pg_sys::TerminateBackgroundWorker(asker.cast_mut_ptr());
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: attached until now.
        #[allow(unsafe_code)]
        unsafe {
            pg_sys::dsm_detach(self.segment);
        }
    }
}
