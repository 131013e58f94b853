//! The shared memory of one server, by the mappings of one of its processes.

use hugepage_assess::model::{Landing, Segment};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::{Bytes, ReadError};
use hugepage_server::segments::may_be_main;
use hugepage_server::server::thp_in_use;

use super::context::InspectContext;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::memory::{self, InstanceMemory};
use super::oracle;

impl InspectContext<'_> {
    /// The mappings of one process stand for the whole server, because each of its processes attaches all of it.
    pub(super) fn memory(&self, found: &DiscoveredServer, notes: &mut Notes) -> Option<InstanceMemory> {
        let is_postgresql = matches!(found.who, DiscoveredKind::PostgreSql(_));
        let of_container = (!is_postgresql && namespace::container(self.root, found.pid).is_some())
            .then(|| notes.keep(self.devices.with_mounts_of(self.root, found.pid)))
            .flatten();
        let devices = of_container.as_ref().unwrap_or(&self.devices);
        let wanted = |mapping: &Mapping| match is_postgresql {
            true => may_be_main(mapping),
            false => oracle::may_be_sga(mapping, devices, self.base),
        };
        match memory::of(self.root, found.pid, devices, self.default, self.numbered, wanted) {
            Ok(mut memory) => {
                if is_postgresql
                    && let Some(main) = memory.mappings.iter().max_by_key(|mapping| mapping.size()).cloned()
                {
                    memory.mappings = vec![self.as_sessions_see(main, found.pid, notes)];
                }
                Some(memory)
            }
            Err(ReadError::Io { source, path, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                notes.add(format!("\"{}\" may not be read: run this as root, or with CAP_SYS_PTRACE", path.display()));
                None
            }
            Err(error) => {
                notes.add(error.to_string());
                None
            }
        }
    }

    /// The main mapping of the postmaster `pid`, with what its newest child may access of it: no server tells its postmaster of
    /// a resize.
    fn as_sessions_see(&self, main: Mapping, pid: i32, notes: &mut Notes) -> Mapping {
        if main.inaccessible == Bytes(0) {
            return main;
        }
        let children = process::children(self.root, pid).unwrap_or_default().into_iter();
        let started = |child: i32| process::stat(self.root, child).ok().flatten().map(|stat| (stat.start_ticks, child));
        let mut children: Vec<_> = children.filter_map(started).collect();
        children.sort_unstable();
        let same = |mapping: &Mapping| (mapping.start, mapping.inode) == (main.start, main.inode);
        // The logger has no shared memory.
        let seen = children.into_iter().rev().find_map(|(_, child)| {
            let mappings = maps::read(self.root, &maps::path(child), same).ok()?;
            mappings.into_iter().next().filter(|mapping| mapping.end == main.end)
        });
        match seen {
            Some(seen) => Mapping { page_size: main.page_size, ..seen },
            None => {
                notes.add(format!(
                    "whether shared memory was resized since the start is unknown: no process of postmaster {pid} shows its mappings"
                ));
                main
            }
        }
    }

    /// Only a walk of the server's page tables could show whether base pages were collapsed into transparent huge
    /// pages. The server itself may do that; no other process should.
    pub(super) fn unless_transparent(&self, mut segment: Segment, pid: i32, notes: &mut Notes) -> Segment {
        if segment.landing == Landing::Base && thp_in_use(self.meminfo.as_ref()) {
            segment.landing = Landing::Unknown;
            notes.add(format!(
                "some shared memory of this host is in transparent huge pages; only a walk of its page tables could tell \
                 whether that of process {pid} is"
            ));
        }
        segment
    }
}
