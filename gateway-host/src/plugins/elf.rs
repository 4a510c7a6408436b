//! A look at a library's bytes before the dynamic linker sees them. The linker's words are often useless (a file for
//! another CPU is "No such file or directory"), and a truncated file kills the process with SIGBUS inside `dlopen`.
//! Not a validator: what passes here can still be refused, or be poison.

/// `e_machine` of this build; a library for any other cannot be loaded.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") {
    183
} else {
    62
};
const HEADER_BYTES: usize = 64;
const SHARED_OBJECT: u16 = 3;

/// Checks the header and that every segment lies within the file. On systems without ELF it only checks that there is something.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() < HEADER_BYTES {
        return Err(format!("too short to be a library ({} bytes)", bytes.len()));
    }
    if cfg!(target_os = "linux") {
        header(bytes)?;
        segments(bytes)?;
    }
    Ok(())
}

fn header(bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err("not a library (no ELF header)".into());
    }
    let (class, endianness) = (bytes.get(4).copied(), bytes.get(5).copied());
    if (class, endianness) != (Some(2), Some(1)) {
        return Err("not a 64-bit little-endian library".into());
    }
    let machine = half(bytes, 18).unwrap_or_default();
    if machine != MACHINE {
        return Err(format!(
            "built for another CPU (ELF machine {machine}, this gateway needs {MACHINE})"
        ));
    }
    match half(bytes, 16) {
        Some(SHARED_OBJECT) => Ok(()),
        other => Err(format!(
            "not a shared library (ELF type {})",
            other.unwrap_or_default()
        )),
    }
}

fn segments(bytes: &[u8]) -> Result<(), String> {
    let have = bytes.len() as u64;
    let table = word(bytes, 32).unwrap_or_default();
    let size = u64::from(half(bytes, 54).unwrap_or_default());
    let count = u64::from(half(bytes, 56).unwrap_or_default());
    let table_end = table.saturating_add(size.saturating_mul(count));
    if table_end > have {
        return Err(format!(
            "truncated: the program headers need {table_end} bytes, file has {have}"
        ));
    }
    for index in 0..count {
        let at = usize::try_from(table + index * size).unwrap_or(usize::MAX);
        let offset = word(bytes, at.saturating_add(8)).unwrap_or(u64::MAX);
        let length = word(bytes, at.saturating_add(32)).unwrap_or(u64::MAX);
        let need = offset.saturating_add(length);
        if need > have {
            return Err(format!(
                "truncated: segment {index} needs {need} bytes, file has {have}"
            ));
        }
    }
    Ok(())
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
#[allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests; not seen as such behind the second cfg"
)]
mod tests {
    use super::*;

    fn library() -> Vec<u8> {
        let mut bytes = vec![0u8; 64 + 56 * 2];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 3;
        bytes[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 2;
        bytes[64 + 56 + 32] = 176; // the second segment ends with the file
        bytes
    }

    #[test]
    fn a_whole_library_passes() {
        assert_eq!(check(&library()), Ok(()));
    }

    #[test]
    fn each_fault_has_its_sentence() {
        type Fault = (&'static str, fn(&mut Vec<u8>), &'static str);
        let faults: [Fault; 8] = [
            (
                "empty",
                |b| b.clear(),
                "too short to be a library (0 bytes)",
            ),
            ("text", |b| b[0] = b'#', "not a library (no ELF header)"),
            ("32 bit", |b| b[4] = 1, "not a 64-bit little-endian library"),
            (
                "big endian",
                |b| b[5] = 2,
                "not a 64-bit little-endian library",
            ),
            (
                "other cpu",
                |b| b[18..20].copy_from_slice(&[243, 0]),
                "built for another CPU (ELF machine 243, this gateway needs",
            ),
            (
                "executable",
                |b| b[16] = 2,
                "not a shared library (ELF type 2)",
            ),
            (
                "cut segment",
                |b| b[64 + 56 + 32] = 177,
                "truncated: segment 1 needs 177 bytes, file has 176",
            ),
            (
                "cut table",
                |b| b.truncate(100),
                "truncated: the program headers need 176 bytes, file has 100",
            ),
        ];
        for (name, break_it, words) in faults {
            let mut bytes = library();
            break_it(&mut bytes);
            let error = check(&bytes).unwrap_err();
            assert!(error.starts_with(words), "{name}: {error}");
        }
    }

    #[test]
    fn no_header_value_panics() {
        for at in 0..64 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = library();
                bytes[at] = value;
                let _ = check(&bytes);
            }
        }
    }
}
