//! The rows of the behaviour table (3A) that are the snapshot's, by number.
