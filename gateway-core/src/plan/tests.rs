//! The rows of the behaviour table (3A) that are the gate's, by number.
