//! /proc/self/auxv: the auxiliary vector, which tells the base page size of another machine (getauxval(3)).

use std::io::Read;

use crate::{PageSize, ReadError, Root};

impl Root {
    /// The base page size of the machine that the tree stands for. For another machine it is what the kernel put into
    /// the auxiliary vector of every process (getauxval(3), `AT_PAGESZ`), where sysconf(3) takes it from.
    pub fn base_page_size(&self) -> Result<PageSize, ReadError> {
        const PATH: &str = "/proc/self/auxv";
        if self.is_live() {
            return Ok(PageSize::base());
        }
        let mut bytes = Vec::new();
        let mut file = self.open(PATH)?;
        file.read_to_end(&mut bytes)
            .map_err(|source| self.error("read", PATH, source))?;
        page_size_in(&bytes).ok_or_else(|| self.content(PATH, "it has no AT_PAGESZ"))
    }
}

/// Parses an auxiliary vector: pairs of 64-bit words, in the byte order of the machine that it comes from.
fn page_size_in(auxv: &[u8]) -> Option<PageSize> {
    const AT_PAGESZ: u64 = 6;
    let (words, _) = auxv.as_chunks::<8>();
    [u64::from_le_bytes, u64::from_be_bytes]
        .into_iter()
        .find_map(|word| {
            let (pairs, _) = words.as_chunks::<2>();
            let &[_, size] = pairs.iter().find(|[key, _]| word(*key) == AT_PAGESZ)?;
            PageSize::new(word(size))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_auxiliary_vector_of_either_byte_order_has_the_page_size() {
        let vector = [
            (33u64, 0x7ffd_0000_0000u64),
            (16, 0x1f8b_fbff),
            (6, 65536),
            (17, 100),
            (0, 0),
        ];
        let little: Vec<u8> = vector
            .iter()
            .flat_map(|(key, value)| [key.to_le_bytes(), value.to_le_bytes()])
            .flatten()
            .collect();
        let big: Vec<u8> = vector
            .iter()
            .flat_map(|(key, value)| [key.to_be_bytes(), value.to_be_bytes()])
            .flatten()
            .collect();
        assert_eq!(page_size_in(&little), PageSize::from_kib(64));
        assert_eq!(page_size_in(&big), PageSize::from_kib(64));
        assert_eq!(page_size_in(&little[..40]), None);
        assert_eq!(page_size_in(b"text, not a vector"), None);
    }

    /// The tree of this machine agrees with sysconf(3).
    #[test]
    fn the_auxiliary_vector_agrees_with_sysconf() {
        let auxv = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(page_size_in(&auxv), Some(PageSize::base()));
    }
}
