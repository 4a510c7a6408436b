//! After this ending, what now?
