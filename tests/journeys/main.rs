//! The product from outside; one module per journey, one executable, one link.

mod busy;
mod crash;
mod fallback;
mod handoff;
mod restart;
