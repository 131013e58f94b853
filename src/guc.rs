//! The server's parameters (guc_tables.h): what runs, and by the server's own functions what its configuration files say.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use hugepage_assess::advice::recommendation::setting;
use hugepage_kernel::Bytes;
use pgrx::{PgMemoryContexts, pg_sys};

use crate::majors;

/// Below all that is logged or sent to a client by default: what the server says of a bad value is not for the log.
const QUIET: c_int = pg_sys::DEBUG5.cast_signed();

/// The settings of the configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFiles {
    /// Names and values in their order; of several with one name the last counts.
    pub settings: Vec<(String, String)>,
    /// The server's error; `None` if it can read the files. With an error no start succeeds.
    pub error: Option<String>,
}

impl ConfigFiles {
    /// Reads the main file and that of ALTER SYSTEM with the server's parser (guc-file.l), which follows includes.
    #[allow(unsafe_code)]
    pub fn read() -> Self {
        let mut context = PgMemoryContexts::new("pg_hugepages configuration files");
        // SAFETY: both lists are in a memory context of their own, and copied before that is deleted.
        unsafe { context.switch_to(|_| Self::parse()) }
    }

    /// The value that counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().rev().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    #[allow(unsafe_code)]
    unsafe fn parse() -> Self {
        let (mut head, mut tail) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: names that end in a zero byte, and two local variables; below ERROR the parser returns.
        let is_valid = unsafe {
            let mut read = |file: *const c_char, must_exist| {
                pg_sys::ParseConfigFile(file, must_exist, ptr::null(), 0, 0, QUIET, &mut head, &mut tail)
            };
            read(pg_sys::ConfigFileName, true) && read(c"postgresql.auto.conf".as_ptr(), false)
        };
        let mut files = Self::default();
        // SAFETY: a list of the parser; its texts end in a zero byte or are null.
        while let Some(item) = unsafe { head.as_ref() } {
            head = item.next;
            files.add(item);
        }
        if !is_valid {
            files.error.get_or_insert_with(|| "the configuration files contain errors".to_owned());
        }
        files
    }

    /// Adds a setting, or the error that stands in its place. The server refuses names that it does not know, but for those
    /// of libraries, which have a dot.
    fn add(&mut self, item: &pg_sys::ConfigVariable) {
        // SAFETY: a text of the parser that ends in a zero byte.
        #[allow(unsafe_code)]
        let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
        let owned = |text: &CStr| text.to_string_lossy().into_owned();
        let is_known =
            |name: &CStr| name.to_bytes().contains(&b'.') || running(name).is_some() || ServerParameter::exists(name);
        let error = match (text(item.errmsg), text(item.name)) {
            (Some(error), _) => Some(owned(error)),
            (None, Some(name)) if !is_known(name) => {
                Some(format!("unrecognized configuration parameter \"{}\"", owned(name)))
            }
            _ => None,
        };
        if let Some(error) = error {
            let place =
                text(item.filename).map(|file| format!(" in file \"{}\" line {}", owned(file), item.sourceline));
            self.error.get_or_insert_with(|| format!("{error}{}", place.unwrap_or_default()));
        } else if let (Some(name), Some(value)) = (text(item.name), text(item.value)) {
            self.settings.push((owned(name), owned(value)));
        }
    }
}

/// A parameter of this server or of a library that it has loaded.
#[derive(Clone, Copy)]
pub struct ServerParameter(*mut pg_sys::config_generic);

impl ServerParameter {
    /// All of them.
    #[allow(unsafe_code)]
    pub fn all() -> Vec<Self> {
        // SAFETY: the server's array of pointers to its parameters, none of which is ever freed.
        let all: Vec<_> = unsafe { majors::parameters() }.into_iter().map(Self).collect();
        all
    }

    /// Whether there is one of that name.
    fn exists(name: &CStr) -> bool {
        Self::all().iter().any(|parameter| name.to_str().is_ok_and(|name| parameter.name().eq_ignore_ascii_case(name)))
    }

    #[allow(unsafe_code)]
    fn record(&self) -> &pg_sys::config_generic {
        // SAFETY: see `all`; read and written by this process alone.
        unsafe { &*self.0 }
    }

    /// The name of the parameter.
    pub fn name(&self) -> String {
        // SAFETY: a name of the server that ends in a zero byte.
        #[allow(unsafe_code)]
        unsafe { CStr::from_ptr(self.record().name) }.to_string_lossy().into_owned()
    }

    /// Whether only a start can change it.
    pub fn needs_start(&self) -> bool {
        self.record().context == pg_sys::GucContext::PGC_POSTMASTER
    }

    /// Whether only superusers and `pg_read_all_settings` may see its value.
    pub fn is_hidden(&self) -> bool {
        self.record().flags.unsigned_abs() & pg_sys::GUC_SUPERUSER_ONLY != 0
    }

    /// Whether its value is an option of the server's command line.
    pub fn is_option(&self) -> bool {
        self.record().reset_source == pg_sys::GucSource::PGC_S_ARGV
    }

    /// Whether its value is one of the configuration files.
    fn is_in_files(&self) -> bool {
        self.record().reset_source == pg_sys::GucSource::PGC_S_FILE
    }

    /// The value that runs, in the unit of the parameter.
    pub fn running(&self) -> String {
        // SAFETY: a name of the server that ends in a zero byte.
        #[allow(unsafe_code)]
        let name = unsafe { CStr::from_ptr(self.record().name) };
        running(name).unwrap_or_default()
    }

    /// Whether a start would give it the value that it has: `on_disk` is that of the configuration files, `None` if they
    /// do not set it. The server's own function compares (guc.c, `set_config_option`), as at a reload, and changes nothing.
    pub fn stays(&self, on_disk: Option<&str>) -> bool {
        let Some(value) = on_disk else {
            // What was computed at the start, or is the default, will be again.
            return !(self.is_in_files() || self.is_option()) || self.is_accepted(None);
        };
        let running = self.running();
        let is_same_path = running.starts_with('/') && std::path::Path::new(&running) == std::path::Path::new(value);
        is_same_path
            || self.is_automatic(value)
            || CString::new(value).is_ok_and(|value| self.is_accepted(Some(&value)))
    }

    /// Whether the server accepts `value`, the default if `None`, in its files without a restart.
    #[allow(unsafe_code)]
    pub fn is_accepted(&self, value: Option<&CStr>) -> bool {
        let source = if value.is_some() { pg_sys::GucSource::PGC_S_FILE } else { pg_sys::GucSource::PGC_S_DEFAULT };
        // SAFETY: the name and the value end in a zero byte. The call only checks; of the record it changes the flag that
        // a restart is pending, which is set back.
        unsafe {
            let status = self.record().status;
            let result = pg_sys::set_config_option(
                self.record().name,
                value.map_or(ptr::null(), CStr::as_ptr),
                pg_sys::GucContext::PGC_SIGHUP,
                source,
                pg_sys::GucAction::GUC_ACTION_SET,
                false,
                QUIET,
                // Else it would not look at values that only new sessions get.
                true,
            );
            (*self.0).status = status;
            result != 0
        }
    }

    /// Whether `value` lets the server choose, as `wal_buffers = -1` does, and it has chosen.
    fn is_automatic(&self, value: &str) -> bool {
        let has_chosen = matches!(
            self.record().reset_source,
            pg_sys::GucSource::PGC_S_OVERRIDE | pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT
        );
        // SAFETY: a record of the server.
        #[allow(unsafe_code)]
        let boot = unsafe { majors::boot_integer(self.0) };
        has_chosen && boot.is_some() && self.integer(value) == boot
    }

    /// `value` as a number in the unit of the parameter, parsed by the server's function.
    fn integer(&self, value: &str) -> Option<c_int> {
        integer(value, self.record().flags)
    }

    /// `value` for people: sizes with a unit.
    pub fn shown(&self, value: &str) -> String {
        let unit = match self.record().flags.unsigned_abs() & pg_sys::GUC_UNIT_MEMORY {
            pg_sys::GUC_UNIT_KB => 1 << 10,
            pg_sys::GUC_UNIT_BLOCKS => u64::from(pg_sys::BLCKSZ),
            pg_sys::GUC_UNIT_XBLOCKS => u64::from(pg_sys::XLOG_BLCKSZ),
            pg_sys::GUC_UNIT_MB => 1 << 20,
            _ => return value.to_owned(),
        };
        match self.integer(value).and_then(|number| u64::try_from(number).ok()) {
            Some(number) => setting(Bytes(number * unit)),
            None => value.to_owned(),
        }
    }
}

/// The value of a parameter in its unit; `None` if this server has no such parameter, or it is a text without a value.
#[allow(unsafe_code)]
pub fn running(name: &CStr) -> Option<String> {
    // SAFETY: the name ends in a zero byte; the value stays until it is changed or asked for again, and is copied.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
    }
}

/// `value` as a number in the unit of `flags` (guc.h), parsed by the server's function.
pub fn integer(value: &str, flags: c_int) -> Option<c_int> {
    let value = CString::new(value).ok()?;
    let mut number = 0;
    // SAFETY: the text ends in a zero byte, the number is a local variable, and the hint may be null.
    #[allow(unsafe_code)]
    let is_valid = unsafe { pg_sys::parse_int(value.as_ptr(), &mut number, flags, ptr::null_mut()) };
    is_valid.then_some(number)
}

/// `value` as a truth value, parsed by the server's function.
pub fn boolean(value: &str) -> Option<bool> {
    let value = CString::new(value).ok()?;
    let mut truth = false;
    // SAFETY: the text ends in a zero byte, and the truth is a local variable.
    #[allow(unsafe_code)]
    unsafe { pg_sys::parse_bool(value.as_ptr(), &mut truth) }.then_some(truth)
}

/// Whether the current user may see the values of hidden parameters; not outside of a transaction, where nobody asks.
#[allow(unsafe_code)]
pub fn may_see_hidden() -> bool {
    // SAFETY: plain questions to the server; the second one only in a transaction, as it asks for.
    unsafe {
        pg_sys::IsTransactionState()
            && pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS))
    }
}
