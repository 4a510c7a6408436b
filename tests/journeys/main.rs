//! The product from outside; one module per journey, one executable, one link.

mod busy;
mod cli;
mod crash;
mod fallback;
mod handoff;
mod plugins;
mod real_claude;
mod restart;
