//! Vocabulary and every decision of the gateway: facts and the time come in, a decision with its reason goes out.
//! No I/O, no async, no clock, no environment.

pub mod access;
pub mod action;
pub mod banner;
pub mod bridge;
pub mod command;
pub mod cooling;
pub mod duration;
pub mod event;
pub mod explain;
pub mod failure;
pub mod handoff;
pub mod headers;
pub mod ids;
pub mod journal;
pub mod message;
pub mod notice;
pub mod plan;
pub mod route;
pub mod spend;
pub mod switch;
pub mod turn;
pub mod usage;
pub mod walk;
