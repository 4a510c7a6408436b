//! The frozen first page of a plugin library: one C static, read before anything of `abi_stable` is touched, so that
//! messages about versions are ours and survive a change of `abi_stable` itself. It only ever grows at its end, and a
//! reader goes no further than `size`.
#![allow(
    unsafe_code,
    reason = "reads foreign memory by its declared size and shares a static of pointers"
)]

use std::marker::PhantomData;

use crate::GatewayPlugin;

/// The symbol a gateway looks for in the library.
pub const DESCRIPTOR_SYMBOL: &str = "BATON_PLUGIN_V1";

/// The first bytes of a descriptor.
pub const MAGIC: [u8; 16] = *b"baton-plugin/v1\0";

/// The contract's version: the same major loads, whichever minor.
pub const API_MAJOR: u32 = 1;
/// See [`API_MAJOR`].
pub const API_MINOR: u32 = if cfg!(feature = "v-next") { 1 } else { 0 };

/// The binary interface below the contract.
pub const ABI_LIB: &str = "abi_stable 0.11";

/// Flag bit: the library unwinds on panic, so panics can be caught inside it.
pub const UNWINDS: u32 = 1;

/// Text inside a library that is never unloaded.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    data: *const u8,
    len: usize,
    text: PhantomData<&'static str>,
}

impl Str {
    const fn new(text: &'static str) -> Self {
        Self {
            data: text.as_ptr(),
            len: text.len(),
            text: PhantomData,
        }
    }

    /// Reads the text; `None` = empty, over-long or not UTF-8.
    ///
    /// # Safety
    /// The descriptor must come from a loaded library that is never unloaded.
    unsafe fn read(self) -> Option<String> {
        if self.data.is_null() || self.len > 256 {
            return None;
        }
        // SAFETY: the caller vouches for the library; the length is bounded above.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.len) };
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// What a plugin library says about itself before any of its code runs.
#[repr(C)]
pub struct Descriptor {
    magic: [u8; 16],
    /// Bytes of this struct as the plugin knows it.
    size: u32,
    api_major: u32,
    api_minor: u32,
    flags: u32,
    id: Str,
    version: Str,
    rustc: Str,
    abi_lib: Str,
}

// SAFETY: the pointers refer to immutable text of a library that is never unloaded.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    #[expect(clippy::cast_possible_truncation, reason = "a few dozen bytes")]
    const SIZE: u32 = size_of::<Self>() as u32;

    /// The descriptor of `P`, for `export_plugin!`.
    pub const fn of<P: GatewayPlugin>() -> Self {
        Self {
            magic: MAGIC,
            size: Self::SIZE,
            api_major: API_MAJOR,
            api_minor: API_MINOR,
            // Evaluated in the plugin's own build: `panic = "abort"` there clears it.
            flags: if cfg!(panic = "unwind") { UNWINDS } else { 0 },
            id: Str::new(P::ID),
            version: Str::new(P::VERSION),
            rustc: Str::new(env!("PLUGIN_API_RUSTC")),
            abi_lib: Str::new(ABI_LIB),
        }
    }
}

/// A descriptor read into owned values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub api_major: u32,
    pub api_minor: u32,
    /// Whether panics can be caught inside the library.
    pub unwinds: bool,
    pub id: String,
    pub version: String,
    pub rustc: String,
    pub abi_lib: String,
}

/// Why a descriptor could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadDescriptor {
    /// The symbol is there but does not start like one of ours.
    Magic,
    /// Shorter than the first version of the struct.
    Size(u32),
    /// A text in it is not readable.
    Text,
}

/// Reads the descriptor behind the library's symbol.
///
/// # Safety
/// `at` must point to the static [`DESCRIPTOR_SYMBOL`] of a loaded library that is never unloaded.
pub unsafe fn read_descriptor(at: *const u8) -> Result<Described, BadDescriptor> {
    // SAFETY: an exported symbol has at least some bytes; magic first, and nothing further if it is not ours.
    let magic = unsafe { at.cast::<[u8; 16]>().read_unaligned() };
    if magic != MAGIC {
        return Err(BadDescriptor::Magic);
    }
    // SAFETY: the magic matched, so the size follows.
    let size = unsafe { at.add(16).cast::<u32>().read_unaligned() };
    if (size as usize) < size_of::<Descriptor>() {
        return Err(BadDescriptor::Size(size));
    }
    // SAFETY: the library says it has at least the bytes this version reads.
    let read = unsafe { &*at.cast::<Descriptor>() };
    let text = |text: Str| {
        // SAFETY: the caller vouches for the library.
        unsafe { text.read() }.ok_or(BadDescriptor::Text)
    };
    Ok(Described {
        api_major: read.api_major,
        api_minor: read.api_minor,
        unwinds: read.flags & UNWINDS != 0,
        id: text(read.id)?,
        version: text(read.version)?,
        rustc: text(read.rustc)?,
        abi_lib: text(read.abi_lib)?,
    })
}
