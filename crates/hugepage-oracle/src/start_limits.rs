//! What the kernel refuses a start of an instance that does not run: huge pages to its owner, or any shared memory.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::{LockLimit, PoolFact};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::host::mounts;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::source::root_files::{RootEntry, RootFiles};
use hugepage_kernel::{Bytes, Notes, PageSize, Root};

use crate::readers::words::size;
use crate::readers::{LastStart, OracleKind, limits_conf, sysvipc};

/// The file that names the local registry of Grid Infrastructure, in a cluster and under Oracle Restart.
pub(crate) const GRID_REGISTRY: &str = "/etc/oracle/olr.loc";

/// What a start may take beyond the pages that are certain.
const MARGIN: u64 = 64 << 20;

/// Where units are.
const UNITS: [&str; 4] =
    ["/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/run/systemd/system", "/etc/systemd/system"];
/// Packages have some hundreds.
const MAX_UNITS: usize = 2000;

/// What the host has for a start.
#[derive(Clone, Copy)]
pub struct HostOfStarts<'a> {
    /// The host.
    pub root: &'a Root,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<&'a Meminfo>,
    /// All pools.
    pub pools: &'a [PoolRow],
    /// The memory in System V segments of huge pages that the running instances of a user have.
    pub held: &'a dyn Fn(u32) -> Bytes,
}

impl HostOfStarts<'_> {
    /// The pool that a start finds, and the size of its pages; `None` if the kernel has no huge pages, or if that is unknown.
    pub(crate) fn pool(&self) -> (Option<PageSize>, PoolFact) {
        let Some(meminfo) = self.meminfo else { return (None, PoolFact::Unknown) };
        let Some(size) = meminfo.huge_page_size else { return (None, PoolFact::Unsupported(Vec::new())) };
        let pool = pools::of_size(self.pools, size);
        (Some(size), pool.map_or(PoolFact::Unknown, |row| PoolFact::Known(row.pool.clone())))
    }

    /// The size of /dev/shm, which has to hold MEMORY_TARGET; `None` if unknown. The kernel shows it where it is not its default.
    pub(crate) fn dev_shm(&self) -> Option<Bytes> {
        let mount = mounts::seen_at(self.root, "/dev/shm").filter(|mount| mount.kind == "tmpfs")?;
        match mount.options.iter().find_map(|option| option.strip_prefix("size=")) {
            Some("0k") => Some(Bytes(u64::MAX)),
            Some(text) => size(text),
            None => Some(Bytes(self.meminfo?.mem_total?.0 / 2)),
        }
    }
}

/// An instance that starts, as far as the kernel cares.
pub(crate) struct StartLimits<'a> {
    pub root: &'a Root,
    pub held: &'a dyn Fn(u32) -> Bytes,
    /// The owner of its program; `None` if unknown.
    pub owner: Option<u32>,
    pub kind: OracleKind,
    pub start: Option<&'a LastStart>,
    /// Whether the last start got huge pages.
    pub is_let: bool,
}

impl StartLimits<'_> {
    /// What the kernel requires for segments of at least `size` bytes in huge pages and the owner does not have (`can_do_hugetlb_shm` in
    /// fs/hugetlbfs/inode.c); `None` if nothing is known to be missing. What is unknown is a note.
    pub fn permission(&self, size: Bytes, notes: &mut Notes) -> Option<LockLimit> {
        let root = self.root;
        let group = sysctl::running(root, "vm.hugetlb_shm_group").ok().flatten().and_then(|gid| gid.parse().ok());
        let owner = self.owner();
        let is_member = group.zip(owner.as_ref()).and_then(|(gid, owner)| accounts::is_member(root, owner.uid, gid));
        let counts_memlock = Advisories::known().affects("shm_memlock", &KernelRelease::text(root)?);
        let others = owner.as_ref().map_or(Bytes(0), |owner| (self.held)(owner.uid));
        // The kernel let the owner have huge pages.
        let was_let = others > Bytes(0) || self.is_let;
        // A tree may lack what its host has.
        let is_known = is_member.is_some() || group.is_none() || root.is_tree();
        let mut unexplained = |why: &str| {
            notes.add(why);
            Some(LockLimit::Unexplained)
        };
        const GROUP: &str = "whether its owner is in the group of vm.hugetlb_shm_group could not be determined";
        let memlock = match self.memlock(owner.as_ref(), others.saturating_add(size)) {
            Ok(limit) => limit,
            Err(why) if is_member != Some(true) && counts_memlock != Some(false) => return unexplained(&why),
            Err(_) => None,
        };
        match (is_member, counts_memlock, memlock) {
            (Some(true), ..) | (_, Some(true), Some(Rlimit::Unlimited)) => None,
            (_, Some(true), Some(Rlimit::At(limit))) => match is_known || limit >= others.saturating_add(size) {
                true => Some(LockLimit::Memlock { limit, others }),
                false => unexplained(GROUP),
            },
            (Some(false), Some(false), _) => Some(LockLimit::ShmGroup { gid: owner?.gid }),
            (Some(false), None, Some(limit)) => match limit.bytes() {
                limit if !was_let => Some(LockLimit::Either { gid: owner?.gid, limit }),
                // It is not in the group, so memlock let it.
                limit => limit.map(|limit| LockLimit::Memlock { limit, others }),
            },
            _ if was_let => None,
            (None, ..) if is_known => None,
            (None, ..) => unexplained(GROUP),
            (Some(false), _, None) => unexplained(
                "the memlock limit of its owner decides about huge pages, and neither an alert log nor limits.conf has it",
            ),
        }
    }

    /// The account that owns its program. A tree has the owners of whoever made it, so there it is the one that manuals name.
    fn owner(&self) -> Option<Account> {
        let all = accounts::accounts(self.root).ok()?;
        if !self.root.is_tree() {
            return all.into_iter().find(|account| Some(account.uid) == self.owner);
        }
        let names: &[&str] = if self.kind == OracleKind::Database { &["oracle"] } else { &["grid", "oracle"] };
        names.iter().find_map(|name| all.iter().find(|account| account.name == *name)).cloned()
    }

    /// The limit on locked memory of the next start: that of the last one, or of limits.conf(5) if that is larger and the last one is
    /// less than `needed`. limits.conf does not hold for what Grid Infrastructure or systemd starts.
    fn memlock(&self, owner: Option<&Account>, needed: Bytes) -> Result<Option<Rlimit>, String> {
        let of_log = self.start.and_then(|start| start.memlock);
        let bytes = |limit: Rlimit| limit.bytes().unwrap_or(Bytes(u64::MAX));
        if self.root.exists(GRID_REGISTRY) {
            return Ok(of_log);
        }
        let of_conf = owner.map(|owner| limits_conf::memlock(self.root, owner));
        let is_less = matches!(&of_conf, Some(Ok(Some(limit))) if bytes(*limit) < needed);
        match (of_log.is_some_and(|limit| bytes(limit) >= needed), owner) {
            (true, _) if is_less => {
                Err("limits.conf has less memlock for its owner than its last start had".to_owned())
            }
            (true, _) => Ok(of_log),
            (false, None) => Err("the account of its owner, for limits.conf, is not in /etc/passwd".to_owned()),
            (false, Some(owner)) => match service_of(self.root, owner) {
                Some(unit) => Err(format!("{unit} may run as its owner, with a memlock limit of systemd's")),
                None => Ok(of_log.into_iter().chain(of_conf.transpose()?.flatten()).max_by_key(|limit| bytes(*limit))),
            },
        }
    }
}

/// A unit that runs as `owner`, or a drop-in.
fn service_of(root: &Root, owner: &Account) -> Option<String> {
    let (mut files, mut places) = (RootFiles::new(root, MAX_UNITS), Vec::from(UNITS.map(str::to_owned)));
    let is_of_owner = |text: &str| {
        let starts_it = ["dbstart", "sqlplus", "/bin/oracle"].iter().any(|program| text.contains(program));
        text.lines().filter_map(|line| line.split_once('=')).any(|(key, value)| match key.trim() {
            "User" => {
                let user = value.trim().trim_matches(['"', '\'']);
                user == owner.name || user.parse() == Ok(owner.uid) || starts_it && user.contains(['%', '\\'])
            }
            // Without a session of PAM, as su(1) opens one.
            "ExecStart" => value.contains("setpriv") && value.contains(&owner.name),
            _ => false,
        })
    };
    while let Some(place) = places.pop() {
        for path in files.names(&place).ok()?.into_iter().map(|name| format!("{place}/{name}")) {
            match files.read(&path) {
                Ok(Some(RootEntry::Text(text))) if is_of_owner(&text) => return Some(path),
                Ok(Some(RootEntry::Directory)) if path.ends_with(".service.d") => places.push(path),
                // What `systemctl link` has linked is elsewhere; a mask is no regular file.
                Ok(Some(RootEntry::Link(target))) if path.ends_with(".service") && target != "/dev/null" => {
                    let found = files.read(&target);
                    if found.is_err() || matches!(found, Ok(Some(RootEntry::Text(text))) if is_of_owner(&text)) {
                        return Some(path);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// The limit of the host that a start with segments of at least `size` bytes exceeds; `own`: segments that end before.
pub fn of_host(root: &Root, size: Bytes, own: Bytes) -> Option<LockLimit> {
    let limit = |name: &str| sysctl::running(root, name).ok().flatten()?.parse::<u64>().ok();
    let segments = sysvipc::read(root).unwrap_or_default();
    let page = root.base_page_size().ok()?;
    let all = segments.iter().map(|size| page.times(page.pages_to_hold(*size))).fold(Bytes(0), Bytes::saturating_add);
    let others = all.saturating_sub(own);
    if let Some(pages) = limit("kernel.shmall") {
        let limit = Bytes(pages.saturating_mul(page.bytes().0));
        if limit < others.saturating_add(size) {
            // With what a start takes beyond the size that is certain.
            let needed = others.saturating_add(size).saturating_add(Bytes(MARGIN));
            return Some(LockLimit::Shmall { limit, others, needed_pages: page.pages_to_hold(needed).0 });
        }
    }
    let (most, largest) = (limit("kernel.shmmni")?, limit("kernel.shmmax").unwrap_or(u64::MAX).max(1));
    // Segments that end before may be any of them.
    let needed = if own > Bytes(0) { 0 } else { size.0.div_ceil(largest) };
    (needed.saturating_add(segments.len() as u64) > most).then_some(LockLimit::Shmmni { limit: most })
}
