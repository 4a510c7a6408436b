//! The judgement against public reports, against each vendor's own wording, and against anything at all.

mod anything;
mod cases;
mod vendors;
