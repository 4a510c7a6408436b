//! The product from outside; one module per journey, one executable, one link.

mod busy;
mod fallback;
mod handoff;
mod power_loss;
mod restart;
mod soak;
